// Checks that the rules are in place without which neighbours reach loopback addresses of this node.
import type { Family } from "../../model/address.ts";
import { isRule } from "../../plan/iptables/adopt.ts";
import { savedRule } from "../../plan/iptables/text.ts";
import type { PlacedRule } from "../../plan/iptables/types.ts";
import { programs, run, type Start, waitForLock } from "./command.ts";

/** What is missing, as a message; null: nothing, or the tables cannot be listed now. */
export async function missingGuard(
  guards: readonly PlacedRule[],
  family: Family,
  start: Start,
  signal: AbortSignal,
): Promise<string | null> {
  for (const { table, chain, rule } of guards) {
    const args = [...waitForLock, "-S", chain, "-t", table];
    const listing = await run(start, programs[family].edit, args, "", signal).catch(() => null);
    // Exit status 1: there is no such chain. Anything else, such as a lock that is held, is no answer.
    if (listing === null || (listing.code !== 0 && listing.code !== 1)) continue;
    const wanted = savedRule(rule, family);
    const lines = listing.code === 1 ? [] : listing.stdout.split("\n");
    const isThere = lines.some((line) => isRule(line.replace(/^-A \S+ /, "").trimEnd(), wanted, family));
    if (!isThere) return `chain ${chain} lost the rule that keeps neighbours from loopback addresses`;
  }
  return null;
}
