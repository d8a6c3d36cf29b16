// Everything ipvs mode ever made, taken away again, whoever made it; what belongs to others stays.
import { emptyStep, isEmpty } from "../../plan/iptables/diff.ts";
import { savedRule } from "../../plan/iptables/text.ts";
import {
  type ChainName,
  type HostTables,
  type IptablesPatch,
  type TableName,
  tableNames,
} from "../../plan/iptables/types.ts";
import type { HeldServer, IpvsState, Operation } from "../../plan/ipvs/types.ts";
import { jumps, ownChains } from "./foundation.ts";
import { type Role, setName, setsOf } from "./sets.ts";

/** Rules go first: a set that one looks at cannot be destroyed. A chain that a foreign rule leads to stays as it is. */
export function rulesRemoval(have: HostTables): IptablesPatch {
  const steps = tableNames.map((table) => {
    const held = have.tables.get(table) ?? new Map<ChainName, readonly string[]>();
    const step = emptyStep(table);
    for (const jump of jumps.filter((each) => each.table === table)) {
      const text = savedRule(jump.rule, have.family);
      const found = held.get(jump.chain)?.filter((line) => line === text) ?? [];
      for (const _ of found) step.remove.push({ ...jump, owner: null });
    }
    step.doom.push(...unreferenced(held, table));
    return step;
  });
  return { family: have.family, steps: steps.filter((step) => !isEmpty(step)) };
}

type Held = ReadonlyMap<ChainName, readonly string[]>;

/** Our chains without those that foreign chains lead to, and without what those in turn lead to. */
function unreferenced(held: Held, table: TableName): ChainName[] {
  const ours = new Set(ownChains[table].filter((name) => held.has(name)));
  const isOurJump = (line: string) => jumps.some(({ rule }) => savedRule(rule, "ipv4") === line);
  const waiting = [...held].filter(([chain]) => !ours.has(chain));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const line of next[1]) {
      const target = / -[jg] (\S+)/.exec(` ${line}`)?.[1] ?? "";
      if (isOurJump(line) || !ours.delete(target)) continue;
      waiting.push([target, held.get(target)!]);
    }
  }
  return [...ours];
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
