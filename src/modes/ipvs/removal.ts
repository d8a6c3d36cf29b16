// Everything ipvs mode ever made, taken away again, whoever made it; what belongs to others stays.
import { emptyStep, isEmpty } from "../../plan/iptables/diff.ts";
import { type Held, heldJumps, unreferenced } from "../../plan/iptables/removal.ts";
import { type HostTables, type IptablesPatch, tableNames } from "../../plan/iptables/types.ts";
import type { HeldServer, IpvsState, Operation } from "../../plan/ipvs/types.ts";
import { jumps, ownChains } from "./foundation.ts";
import { type Role, setName, setsOf } from "./sets.ts";

/** Rules go first: a set that one looks at cannot be destroyed. A chain that a foreign rule leads to stays as it is. */
export function rulesRemoval(have: HostTables): IptablesPatch {
  const steps = tableNames.map((table) => {
    const held: Held = have.tables.get(table) ?? new Map();
    const step = emptyStep(table);
    const own = jumps.filter((jump) => jump.table === table);
    step.remove.push(...heldJumps(held, own, have.family));
    const ours = ownChains[table].filter((name) => held.has(name));
    step.doom.push(...unreferenced(held, ours, jumps));
    return step;
  });
  return { family: have.family, steps: steps.filter((step) => !isEmpty(step)) };
}

/** Servers, link and sets, in that order. Virtual servers that nobody of ours made stay. */
export function ipvsRemoval(have: IpvsState): Operation[] {
  const servers = [...have.servers.values()].filter((server) => isOurs(server, have));
  const sets = setsOf(have.family).filter(({ name }) => have.sets.has(name));
  return [
    ...servers.map(
      ({ address, port, protocol }): Operation => ({
        kind: "delete server",
        server: { address, port, protocol },
      }),
    ),
    ...(have.link === "dummy" ? [{ kind: "delete link" } as const] : []),
    ...sets.map(({ name }): Operation => ({ kind: "destroy set", set: name })),
  ];
}

/** Its address is on our link, or our sets speak of it. */
function isOurs({ address, protocol, port }: HeldServer, { family, addresses, sets }: IpvsState): boolean {
  const holds = (role: Role, entry: string) => sets.get(setName(role, family))?.entries.has(entry) === true;
  const place = `${address},${protocol}:${port}`;
  return (
    addresses.has(address) ||
    (["clusterIP", "externalIP", "externalIPLocal", "loadBalancer", "nodePortSctp"] as const).some((role) =>
      holds(role, place),
    ) ||
    (protocol === "tcp" && holds("nodePortTcp", String(port))) ||
    (protocol === "udp" && holds("nodePortUdp", String(port)))
  );
}
