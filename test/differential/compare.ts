// Checks whether two worlds agree on a cell.
import { type Cell, hasManyAddresses } from "./cells.ts";
import type { Outcomes } from "./observe.ts";

export function agree(cell: Cell, reference: Outcomes, ours: Outcomes): boolean {
  const a = comparable(cell, reference, ours);
  const b = comparable(cell, ours, reference);
  return a.size === b.size && [...a].every((outcome) => b.has(outcome));
}

/**
 * Which endpoint a client sticks to is chance. Only the outside, with its many addresses, sees all of them; for
 * the others the endpoint's name is left out, and with it whether the packet came back to its sender.
 */
function comparable(cell: Cell, met: Outcomes, others: Outcomes): ReadonlySet<string> {
  const outcomes = withoutLuck(cell, met, others);
  if (!cell.sticky || hasManyAddresses(cell.from)) return outcomes;
  return new Set([...outcomes].map((outcome) => (isAnswer(outcome) ? "an endpoint" : outcome)));
}

/**
 * The node's own address stays when it is masqueraded: only the port shows it. Once in 64,000 times it stays too, and
 * of two connections from one port to one endpoint the second gets another port without any masquerading.
 */
function withoutLuck({ from }: Cell, met: Outcomes, others: Outcomes): ReadonlySet<string> {
  if (from.place !== "host") return met;
  return new Set(
    [...met].filter((one) => others.has(one) || !met.has(twinOf(one)) || !others.has(twinOf(one))),
  );
}

function twinOf(outcome: string): string {
  return outcome.endsWith(" kept")
    ? outcome.replace(/ kept$/, " masqueraded")
    : outcome.replace(/ masqueraded$/, " kept");
}

export function isAnswer(outcome: string): boolean {
  return / (kept|masqueraded|seen as .*)$/.test(outcome);
}
