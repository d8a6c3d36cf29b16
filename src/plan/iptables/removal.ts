// Clean-up shared by all modes that write rules: which jumps and which otherwise unused chains to delete.
import { savedRule } from "./text.ts";
import type { ChainName, HostTables, Owned, PlacedRule } from "./types.ts";

/** One table as the host holds it: the rules of each chain as `iptables-save` shows them. */
export type Held = ReadonlyMap<ChainName, readonly string[]>;

/** Each of these jumps, as often as the host holds it. */
export function heldJumps(
  held: Held,
  jumps: readonly PlacedRule[],
  family: HostTables["family"],
): Owned<PlacedRule>[] {
  return jumps.flatMap((jump) => {
    const text = savedRule(jump.rule, family);
    const found = held.get(jump.chain)?.filter((line) => line === text) ?? [];
    return found.map(() => ({ ...jump, owner: null }));
  });
}

/** Our chains without those that foreign chains lead to, and without what those in turn lead to. */
export function unreferenced(
  held: Held,
  names: Iterable<ChainName>,
  jumps: readonly PlacedRule[],
): ChainName[] {
  const ours = new Set(names);
  const ourJumps = new Set(jumps.map(({ rule }) => savedRule(rule, "ipv4")));
  const isOurJump = (line: string) => ourJumps.has(line);
  // Taking one chain out of the list may leave a foreign rule's target with jumps into others of ours.
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
