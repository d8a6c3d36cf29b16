// Follows UDP Frontends and Endpoints: when flows may have become stale, and which Frontends left them behind.
import { type Address, isLoopback } from "../model/address.ts";
import { endpointKey, type PortKey, type ServicePort } from "../model/snapshot.ts";
import { type Frontend, type FrontendId, frontendId, type PortRoutes, type Routes } from "./routes.ts";
import { servingOf, type UdpFlow } from "./staleflows.ts";

/** Where flows may be stale: those sent to a Frontend (`address` null: a NodePort), or answered by an Endpoint. */
export type SuspectFlows =
  | { readonly kind: "sent to"; readonly address: Address | null; readonly port: number }
  | { readonly kind: "answered by"; readonly address: Address; readonly port: number };

/** Beyond this, it is no longer noted where. */
const mostSuspects = 1000;

export class GoneFrontends {
  /** Of each ServicePort with UDP, as of the last Routes. */
  readonly #held = new Map<PortKey, Held>();
  readonly #gone = new Set<FrontendId>();
  /** null: anywhere. */
  #suspects: Map<string, SuspectFlows> | null = new Map();

  /** Call it with all keys that changed since the last time. Returns whether flows may have become stale. */
  note(routes: Routes, changed: ReadonlySet<PortKey>): boolean {
    let mayBeStale = false;
    for (const key of changed) {
      const before = this.#held.get(key);
      const isUdp = routes.servicePorts.get(key)?.protocol === "udp";
      const now = isUdp ? heldBy(routes.ports.get(key)!) : null;
      for (const id of before?.frontends.keys() ?? []) this.#gone.add(id);
      if (now === null) this.#held.delete(key);
      else this.#held.set(key, now);
      const suspects = suspectsAfter(before, now);
      mayBeStale ||= suspects.length > 0;
      this.suspect(suspects);
    }
    // Who is served at a Frontend that changed hands is decided by the endpoints of its holder.
    for (const id of this.#gone) if (isClaimed(id, routes)) this.#gone.delete(id);
    return mayBeStale;
  }

  /** All that left since they were last forgotten. */
  get all(): ReadonlySet<FrontendId> {
    return this.#gone;
  }

  /** Where flows may be stale since this was last called; null: anywhere. */
  takeSuspects(): readonly SuspectFlows[] | null {
    const suspects = this.#suspects;
    this.#suspects = new Map();
    return suspects === null ? null : [...suspects.values()];
  }

  /** Also after a search that was not completed. */
  suspect(flows: readonly SuspectFlows[] | null): void {
    for (const suspect of flows ?? [])
      this.#suspects?.set(`${suspect.kind} ${suspect.address} ${suspect.port}`, suspect);
    if (flows === null || (this.#suspects?.size ?? 0) > mostSuspects) this.#suspects = null;
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
  return claims.has(id);
}

type Held = { readonly frontends: ReadonlyMap<FrontendId, Frontend>; readonly port: ServicePort };

function heldBy(routed: PortRoutes): Held | null {
  if (routed.routes.length === 0) return null;
  const frontends = new Map(routed.routes.map(({ frontend }) => [frontendId(frontend), frontend]));
  return { frontends, port: routed.port };
}

/**
 * An Endpoint that stopped serving or a Frontend that left has flows that lead nowhere. A Frontend that is served for the first time has
 * flows that passed it by. An Endpoint that is added to others has none.
 */
function suspectsAfter(before: Held | undefined, now: Held | null): readonly SuspectFlows[] {
  const suspects = [...onlyIn(before, now), ...onlyIn(now, before)].map(sentTo);
  if (before === undefined || now === null || before.port.endpoints === now.port.endpoints) return suspects;
  const [served, serving] = [servingOf(before.port), servingOf(now.port)];
  if (served.size === 0 && serving.size > 0)
    for (const frontend of now.frontends.values()) suspects.push(sentTo(frontend));
  for (const endpoint of before.port.endpoints) {
    const { address, port } = endpoint;
    if (endpoint.serving && !serving.has(endpointKey(endpoint)))
      suspects.push({ kind: "answered by", address, port });
  }
  return suspects;
}

/** The Frontends that one has and the other has not. */
function onlyIn(one: Held | null | undefined, other: Held | null | undefined): readonly Frontend[] {
  const found: Frontend[] = [];
  for (const [id, frontend] of one?.frontends ?? [])
    if (other?.frontends.has(id) !== true) found.push(frontend);
  return found;
}

function sentTo(frontend: Frontend): SuspectFlows {
  const address = frontend.kind === "nodePort" ? null : frontend.address;
  return { kind: "sent to", address, port: frontend.port };
}
