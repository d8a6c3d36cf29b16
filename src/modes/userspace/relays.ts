// The relays of one family as plain data: those that Routes require, those that a daemon has, and how they differ.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { Problem } from "../../model/problem.ts";
import { type Endpoint, endpointKey, type PortKey, type Protocol, portLabel } from "../../model/snapshot.ts";
import {
  type Frontend,
  type FrontendId,
  frontendId,
  type PortRoutes,
  type Routes,
} from "../../routing/routes.ts";
import type { Sockets } from "./compile.ts";
import { type Guard, guardOf, type PoolName, policiesOf, type RelayPolicy } from "./relay-policy.ts";

export type OpenRelays = {
  /** ServicePorts that have relays. */
  readonly ports: readonly RelayedPort[];
  /** Frontends whose place is held, so that no other program listens there. */
  readonly held: readonly FrontendId[];
  /** Frontends whose place another program holds: they stay with that program. */
  readonly taken: readonly FrontendId[];
};

export type RelayedPort = {
  readonly key: PortKey;
  readonly protocol: Protocol;
  /** The port each relay listens on. */
  /** Ports by policy; the name is a key of the status socket. */
  readonly doors: Readonly<Partial<Record<RelayPolicy, number>>>;
  readonly guard: Guard;
  /** Who can be chosen. */
  readonly pools: Readonly<Record<PoolName, readonly Backend[]>>;
};

type Backend = Pick<Endpoint, "address" | "port">;

export const noRelays: OpenRelays = { ports: [], held: [], taken: [] };

/** What Routes require. Only a daemon has the ports of its relays: here they are numbered by ServicePort. */
export function wantedRelays({ ports, settings }: Routes): OpenRelays {
  let next = 1;
  const relayed: RelayedPort[] = [];
  const held: FrontendId[] = [];
  for (const key of [...ports.keys()].sort()) {
    const routed = ports.get(key)!;
    const policies = [...policiesOf(routed)].sort().map((policy) => [policy, next++] as const);
    if (policies.length === 0) continue;
    relayed.push({
      key,
      protocol: routed.port.protocol,
      doors: Object.fromEntries(policies),
      guard: guardOf(routed),
      pools: { cluster: routed.pools.cluster.endpoints, local: routed.pools.local.endpoints },
    });
    const places = routed.routes.map(({ frontend }) => frontend);
    for (const place of places) if (needsReservation(place, settings)) held.push(frontendId(place));
  }
  return { ports: relayed, held: held.sort(), taken: [] };
}

/** There are no relays for SCTP. */
export function unserved({ port }: Pick<PortRoutes, "port">): readonly Problem[] {
  if (port.protocol !== "sctp") return [];
  const message = `${portLabel(port)} is not served: userspace mode has no relays for SCTP; use another mode`;
  return [{ kind: "unserved", object: `Service ${port.service}`, field: "spec.ports", message }];
}

/** NodePorts everywhere, other Frontends where they are addresses of this node. */
export function needsReservation(
  frontend: Frontend,
  { localAddresses }: Pick<FamilySettings, "localAddresses">,
): boolean {
  return frontend.kind === "nodePort" || localAddresses.includes(frontend.address);
}

/** The sockets that rules can lead to. */
export function socketsIn({ ports, taken }: OpenRelays): (key: PortKey) => Sockets {
  const places = new Set(taken);
  const relayPorts = new Map(
    ports.map((port) => [port.key, new Map(Object.entries(port.doors) as [RelayPolicy, number][])]),
  );
  return (key) => ({ relayPorts: relayPorts.get(key) ?? new Map(), taken: places });
}

/** A line for each relay that is not as it should be; ports are the daemon's to choose. */
export function relayDifferences(have: OpenRelays, want: OpenRelays): string[] {
  const held = new Set(have.held);
  const taken = new Set(have.taken);
  const [relays, wanted] = [byKey(have), byKey(want)];
  const keys = [...new Set([...relays.keys(), ...wanted.keys()])].sort();
  return [
    ...keys.flatMap((key) => portDifferences(key, relays.get(key), wanted.get(key))),
    ...have.taken.map((place) => `another program holds ${place}`),
    ...want.held
      .filter((place) => !held.has(place) && !taken.has(place))
      .map((place) => `${place} is not held`),
  ];
}

function byKey({ ports }: OpenRelays): ReadonlyMap<PortKey, RelayedPort> {
  return new Map(ports.map((port) => [port.key, port]));
}

function portDifferences(
  key: PortKey,
  have: RelayedPort | undefined,
  want: RelayedPort | undefined,
): string[] {
  const [found, wanted] = [Object.keys(have?.doors ?? {}), Object.keys(want?.doors ?? {})];
  const lines = [
    ...wanted.filter((policy) => !found.includes(policy)).map((policy) => `missing relay ${key} (${policy})`),
    ...found.filter((policy) => !wanted.includes(policy)).map((policy) => `foreign relay ${key} (${policy})`),
  ];
  if (have === undefined || want === undefined) return lines;
  for (const pool of ["cluster", "local"] as const) {
    const [found, wanted] = [poolText(have.pools[pool]), poolText(want.pools[pool])];
    if (found !== wanted) lines.push(`relay ${key} (${pool}) leads to ${found} instead of ${wanted}`);
  }
  if (JSON.stringify(have.guard) !== JSON.stringify(want.guard))
    lines.push(`relay ${key} lets other clients in`);
  return lines;
}

function poolText(pool: readonly Backend[]): string {
  return pool.map(endpointKey).sort().join(", ") || "no endpoint";
}
