// Walks a packet through virtual servers, IP sets and the rules that match them, as the kernel would.
import { type Address, contains, hostCidr } from "../../model/address.ts";
import { serverKey } from "../../plan/ipvs/names.ts";
import type { DestinationId, Entry, IpvsPlan, IpvsState, ServerKey, SetName } from "../../plan/ipvs/types.ts";
import type { Packet } from "../../routing/decide.ts";
import {
  type IptablesSurroundings,
  type IptablesWalk,
  isLocal,
  outcomeOf,
  type Ruleset,
  rulesetOf,
  run,
  type SetView,
  type State,
  startOf,
} from "../iptables/walk.ts";

/** What decides about a packet, wanted or held. */
export type IpvsView = {
  readonly rules: Ruleset;
  /** Real servers that take new connections. */
  readonly servers: ReadonlyMap<ServerKey, readonly DestinationId[]>;
  readonly addresses: ReadonlySet<Address>;
  readonly sets: ReadonlyMap<SetName, { readonly type: string; readonly entries: ReadonlySet<Entry> }>;
};

export function viewOfPlan(plan: IpvsPlan): IpvsView {
  const sets = new Map(
    plan.sets.map(({ name, type }) => [name, { type: type as string, entries: new Set<Entry>() }]),
  );
  for (const key of plan.entries.keys()) {
    const space = key.indexOf(" ");
    sets.get(key.slice(0, space))!.entries.add(key.slice(space + 1));
  }
  return {
    rules: rulesetOf(plan.tables),
    servers: new Map(
      [...plan.servers.entries()].map(([key, claims]) => [key, [...claims[0]!.server.destinations.values()]]),
    ),
    addresses: new Set(plan.addresses.keys()),
    sets,
  };
}

export function viewOfHost(rules: Ruleset, { servers, addresses, sets }: IpvsState): IpvsView {
  const taking = [...servers].map(
    ([key, { destinations }]) =>
      [key, [...destinations.values()].filter(({ weight }) => weight > 0)] as const,
  );
  return { rules, servers: new Map(taking), addresses, sets };
}

/** Every way a new packet can go: one for each real server. */
export function walkIpvs(
  view: IpvsView,
  packet: Packet,
  around: IptablesSurroundings,
): readonly IptablesWalk[] {
  const isInSet = (set: SetName, sides: string, seen: SetView) => isEntry(view, set, sides, seen);
  const localAddresses = [...around.localAddresses, ...view.addresses];
  const { protocol, ...place } = packet.to;
  const destinations = protocol === "icmp" ? undefined : view.servers.get(serverKey({ ...place, protocol }));
  const ways = destinations === undefined || destinations.length === 0 ? [null] : destinations;
  const walks: IptablesWalk[] = [];
  for (const destination of ways) {
    const state = startOf(view.rules, packet, { ...around, localAddresses, isInSet });
    // A process that does not choose its address gets the one it calls, since that is local too.
    if (packet.from.origin === "node" && view.addresses.has(packet.to.address))
      state.source = packet.to.address;
    const serve = destinations === undefined ? null : () => throughServer(state, destination);
    const outcome = outcomeOf(state, passHooks(state, serve));
    walks.push({ outcome, steps: state.steps });
    // Where it is not let through, the others are not let through either.
    if (outcome.kind !== "forward") break;
  }
  return walks;
}

type Verdict = "drop" | "reject" | null;

/** IPVS takes packets where they would be delivered: after filter INPUT, or before filter OUTPUT. */
function passHooks(state: State, serve: (() => Verdict) | null): Verdict {
  if (state.packet.from.origin === "node") {
    const out = run(state, "nat", "OUTPUT");
    if (out !== null) return out;
    if (serve !== null) return serve();
    const sent = run(state, "filter", "OUTPUT") ?? run(state, "nat", "POSTROUTING");
    return sent ?? (isLocal(state, state.destination.address) ? run(state, "filter", "INPUT") : null);
  }
  const before = run(state, "nat", "PREROUTING");
  if (before !== null) return before;
  if (!isLocal(state, state.destination.address)) {
    return run(state, "filter", "FORWARD") ?? run(state, "nat", "POSTROUTING");
  }
  return run(state, "filter", "INPUT") ?? serve?.() ?? null;
}

/** null: there is no real server, and the kernel refuses. */
function throughServer(state: State, destination: DestinationId | null): Verdict {
  if (destination === null) return "reject";
  state.server = state.destination;
  state.destination = destination;
  state.translated = true;
  const sent = run(state, "filter", "OUTPUT");
  if (sent !== null) return sent;
  const staysHere = state.packet.from.origin !== "node" && isLocal(state, destination.address);
  return staysHere ? null : run(state, "nat", "POSTROUTING");
}

/** The type gives the parts of an entry, the sides where each part is taken from. */
function isEntry({ sets }: IpvsView, name: SetName, sides: string, seen: SetView): boolean {
  const set = sets.get(name);
  if (set === undefined) return false;
  const { source, destination, protocol } = seen;
  const [kind = "", made = ""] = set.type.split(":");
  if (protocol === "icmp" && made.includes("port")) return false;
  if (kind === "bitmap") return set.entries.has(String(destination.port));
  const side = sides.split(",");
  const parts = made
    .split(",")
    .map((part, i) =>
      part === "port" ? `${protocol}:${destination.port}` : side[i] === "src" ? source : destination.address,
    );
  if (!made.endsWith("net")) return set.entries.has(parts.join(","));
  const [address, port, from] = parts as [string, string, string];
  const start = `${address},${port},`;
  return [...set.entries].some((entry) => {
    const range = entry.slice(start.length);
    return entry.startsWith(start) && contains(range.includes("/") ? range : hostCidr(range), from);
  });
}
