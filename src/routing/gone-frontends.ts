// Follows UDP Frontends and Endpoints: when flows may have become stale, and which Frontends left them behind.
import { isLoopback } from "../model/address.ts";
import type { PortKey, ServicePort } from "../model/snapshot.ts";
import { type FrontendId, frontendId, type PortRoutes, type Routes } from "./routes.ts";
import { servingOf, type UdpFlow } from "./staleflows.ts";

export class GoneFrontends {
  /** Of each ServicePort with UDP, as of the last Routes. */
  readonly #held = new Map<PortKey, Held>();
  readonly #gone = new Set<FrontendId>();

  /** Call it with all keys that changed since the last time. Returns whether flows may have become stale. */
  note(routes: Routes, changed: ReadonlySet<PortKey>): boolean {
    let mayBeStale = false;
    for (const key of changed) {
      const before = this.#held.get(key);
      const now = heldBy(routes.ports.get(key));
      for (const id of before?.frontends ?? []) this.#gone.add(id);
      if (now === null) this.#held.delete(key);
      else this.#held.set(key, now);
      mayBeStale ||= leavesFlows(before, now);
    }
    // Who is served at a Frontend that changed hands is decided by the endpoints of its holder.
    for (const id of this.#gone) if (isClaimed(id, routes)) this.#gone.delete(id);
    return mayBeStale;
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

type Held = { readonly frontends: readonly FrontendId[]; readonly port: ServicePort };

function heldBy(routed: PortRoutes | undefined): Held | null {
  if (routed === undefined || routed.port.protocol !== "udp" || routed.routes.length === 0) return null;
  return { frontends: routed.routes.map(({ frontend }) => frontendId(frontend)), port: routed.port };
}

/**
 * An Endpoint that stopped serving or a Frontend that left has flows that lead nowhere. A Frontend that is served for the first time has
 * flows that passed it by. An Endpoint that is added to others has none.
 */
function leavesFlows(before: Held | undefined, now: Held | null): boolean {
  if (before === undefined || now === null) return before !== undefined || now !== null;
  const same = before.frontends.length === now.frontends.length;
  if (!same || now.frontends.some((id, i) => id !== before.frontends[i])) return true;
  if (before.port.endpoints === now.port.endpoints) return false;
  const [served, serving] = [servingOf(before.port), servingOf(now.port)];
  if (served.size === 0) return serving.size > 0;
  for (const endpoint of served) if (!serving.has(endpoint)) return true;
  return false;
}
