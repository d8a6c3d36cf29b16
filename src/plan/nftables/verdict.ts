// Verdicts of map elements: made, compared and followed here. Elements that lead to the same shared chain hold one object.
import type { Verdict } from "./types.ts";

export const drop: Verdict = { kind: "drop" };

export function goto(chain: string): Verdict {
  return { kind: "goto", chain };
}

/** The chain that a verdict leads to; null when it leads to none. */
export function chainOf(verdict: Verdict | null): string | null {
  return verdict !== null && "chain" in verdict ? verdict.chain : null;
}

/** Verdicts read from a kernel are objects of their own. */
export function sameVerdict(a: Verdict | null, b: Verdict | null): boolean {
  if (a === b) return true;
  return a !== null && b !== null && a.kind === b.kind && chainOf(a) === chainOf(b);
}
