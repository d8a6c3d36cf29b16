// Remembers UDP Frontends that left, so that flows which the kernel still leads through them are found and deleted.
import { isLoopback } from "../model/address.ts";
import type { PortKey } from "../model/snapshot.ts";
import { type FrontendId, frontendId, type PortRoutes, type Routes } from "./routes.ts";
import type { UdpFlow } from "./staleflows.ts";

export class GoneFrontends {
  /** Of each ServicePort with UDP, as of the last Routes. */
  readonly #held = new Map<PortKey, readonly FrontendId[]>();
  readonly #gone = new Set<FrontendId>();

  /** To be called once with each Routes, in their order. */
  note(routes: Routes): void {
    for (const key of routes.changed) {
      for (const id of this.#held.get(key) ?? []) this.#gone.add(id);
      const held = udpFrontends(routes.ports.get(key));
      if (held.length === 0) this.#held.delete(key);
      else this.#held.set(key, held);
    }
    // Who is served at a Frontend that changed hands is decided by the endpoints of its holder.
    for (const id of this.#gone) if (isClaimed(id, routes)) this.#gone.delete(id);
  }

  /** All that left since they were last forgotten. */
  get all(): ReadonlySet<FrontendId> {
    return this.#gone;
  }

  forget(ids: Iterable<FrontendId>): void {
    for (const id of ids) this.#gone.delete(id);
  }
}

/** Whether a flow was translated at one of these Frontends; what was sent past them is not ours. */
export function usesGoneFrontend(flow: UdpFlow, gone: ReadonlySet<FrontendId>, routes: Routes): boolean {
  if (gone.size === 0) return false;
  const { destination, destinationPort: port, replySource, replySourcePort } = flow;
  if (replySource === destination && replySourcePort === port) return false;
  const isGone = (id: FrontendId) => gone.has(id) && !isClaimed(id, routes);
  if (isGone(`${destination}/udp/${port}`)) return true;
  const { localAddresses } = routes.settings;
  return isGone(`node/udp/${port}`) && (isLoopback(destination) || localAddresses.includes(destination));
}

function isClaimed(id: FrontendId, { claims }: Routes): boolean {
  return claims.get(id)?.[0] !== undefined;
}

function udpFrontends(routed: PortRoutes | undefined): readonly FrontendId[] {
  if (routed === undefined || routed.port.protocol !== "udp") return [];
  return routed.routes.map(({ frontend }) => frontendId(frontend));
}
