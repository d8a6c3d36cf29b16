// Judges whether two worlds agree on a cell.
import { type Cell, hasManyAddresses } from "./cells.ts";
import type { Outcomes } from "./observe.ts";

export function agree(cell: Cell, reference: Outcomes, ours: Outcomes): boolean {
  const [a, b] = [comparable(cell, reference), comparable(cell, ours)];
  return a.size === b.size && [...a].every((outcome) => b.has(outcome));
}

/**
 * Which endpoint a client sticks to is chance. Only the outside, with its many addresses, sees all of them; for
 * the others the endpoint's name is left out, and with it whether the packet came back to its sender.
 */
function comparable(cell: Cell, met: Outcomes): ReadonlySet<string> {
  const outcomes = withoutLuck(cell, met);
  if (!cell.sticky || hasManyAddresses(cell.from)) return outcomes;
  return new Set([...outcomes].map((outcome) => (isAnswer(outcome) ? "an endpoint" : outcome)));
}

/** The node's own address stays when it is masqueraded; once in 64,000 times its port does too. */
function withoutLuck({ from }: Cell, outcomes: Outcomes): ReadonlySet<string> {
  if (from.place !== "host") return outcomes;
  const masked = (outcome: string): string => outcome.replace(/ kept$/, " masqueraded");
  return new Set([...outcomes].filter((one) => !one.endsWith(" kept") || !outcomes.has(masked(one))));
}

export function isAnswer(outcome: string): boolean {
  return / (kept|masqueraded|seen as .*)$/.test(outcome);
}
