// Everything ipvs mode ever made, removed again, also what another program made; what belongs to other programs stays.
import type { Address } from "../../model/address.ts";
import { emptyStep, isEmpty } from "../../plan/iptables/diff.ts";
import { type Held, heldJumps, unreferenced } from "../../plan/iptables/removal.ts";
import { type HostTables, type IptablesPatch, tableNames } from "../../plan/iptables/types.ts";
import { isDrained } from "../../plan/ipvs/drain.ts";
import type { HeldServer, IpvsState, Operation, ServerId } from "../../plan/ipvs/types.ts";
import { jumps, ownChains } from "./foundation.ts";
import { type Role, setName, setsOf } from "./sets.ts";

/** Rules are deleted first: a set that a rule matches cannot be destroyed. A chain that a foreign rule jumps to stays as it is. */
export function rulesRemoval(have: HostTables): IptablesPatch {
  const steps = tableNames.map((table) => {
    const held: Held = have.tables.get(table) ?? new Map();
    const step = emptyStep(table);
    const own = jumps.filter((jump) => jump.table === table);
    step.remove.push(...heldJumps(held, own, have.family));
    const ours = [...ownChains[table], ...olderChains[table]].filter((name) => held.has(name));
    step.doom.push(...unreferenced(held, ours, jumps));
    return step;
  });
  return { family: have.family, steps: steps.filter((step) => !isEmpty(step)) };
}

/** Of kube-proxy up to v1.26. The chain of this name in table filter is the kubelet's. */
const olderChains: typeof ownChains = { nat: ["KUBE-FIREWALL"], filter: [], mangle: [] };

/** Servers, link and sets, in that order. Virtual servers of other programs stay, and so does a link of another kind. */
export function ipvsRemoval(have: IpvsState): Operation[] {
  const sets = setsOf(have.family).filter(({ name }) => have.sets.has(name));
  return [
    ...ownServers(have).flatMap(deleted),
    ...(have.link === "dummy" ? [{ kind: "delete link" } as const] : ownAddresses(have).map(withoutAddress)),
    ...sets.map(({ name }): Operation => ({ kind: "destroy set", set: name })),
  ];
}

/** On a foreign link only those that our set contains. */
function ownAddresses({ family, link, addresses, sets }: IpvsState): Address[] {
  const ours = link === "dummy" ? addresses : sets.get(setName("ipvsIPs", family))?.entries;
  return [...addresses].filter((address) => ours?.has(address) === true);
}

function withoutAddress(address: Address): Operation {
  return { kind: "delete address", address };
}

/**
 * What can be removed without ending a connection, once another mode gets all new ones. Servers with connections stay, and take
 * no others; their addresses stay too, and the sets, by which they are known to be ours.
 */
export function ipvsRelease(have: IpvsState): Operation[] {
  const busy = ownServers(have).filter(isBusy);
  const needed = new Set(busy.map(({ address }) => address));
  return [
    ...ownServers(have).flatMap((server) => (isBusy(server) ? closed(server) : deleted(server))),
    ...ownAddresses(have)
      .filter((address) => !needed.has(address))
      .map(withoutAddress),
  ];
}

/** Whether a server of ours still has connections: then the link and the sets must stay. */
export function hasConnections(have: IpvsState): boolean {
  return ownServers(have).some(isBusy);
}

function isBusy(server: HeldServer): boolean {
  return (
    isDrained(server) &&
    [...server.destinations.values()].some(({ active, inactive }) => active + inactive > 0)
  );
}

function closed(server: HeldServer): Operation[] {
  const open = [...server.destinations.values()].filter(({ weight }) => weight !== 0);
  return open.map(({ address, port }) => ({
    kind: "set destination",
    server: idOf(server),
    destination: { address, port, weight: 0 },
  }));
}

function deleted(server: HeldServer): Operation[] {
  return [{ kind: "delete server", server: idOf(server) }];
}

function idOf({ address, port, protocol }: HeldServer): ServerId {
  return { address, port, protocol };
}

/** Their address is ours on the link, or our sets contain them. */
function ownServers(have: IpvsState): HeldServer[] {
  const own = new Set(ownAddresses(have));
  return [...have.servers.values()].filter((server) => own.has(server.address) || isSpokenOf(server, have));
}

/** By our sets. */
function isSpokenOf({ address, protocol, port }: HeldServer, { family, sets }: IpvsState): boolean {
  const holds = (role: Role, entry: string) => sets.get(setName(role, family))?.entries.has(entry) === true;
  const place = `${address},${protocol}:${port}`;
  return (
    (["clusterIP", "externalIP", "externalIPLocal", "loadBalancer", "nodePortSctp"] as const).some((role) =>
      holds(role, place),
    ) ||
    (protocol === "tcp" && holds("nodePortTcp", String(port))) ||
    (protocol === "udp" && holds("nodePortUdp", String(port)))
  );
}
