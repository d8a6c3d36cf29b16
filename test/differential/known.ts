// Differences from kube-proxy that are wanted, each with its reason; docs/compatibility.md tells users the same.
import type { Mode } from "../reference/proxy.ts";
import type { Cell } from "./cells.ts";
import type { Outcomes } from "./observe.ts";

export type KnownDifference = {
  readonly mode: Mode;
  readonly reason: string;
  readonly covers: (cell: Cell, reference: Outcomes, ours: Outcomes) => boolean;
};

export const knownDifferences: readonly KnownDifference[] = [];

export function reasonFor(mode: Mode, cell: Cell, reference: Outcomes, ours: Outcomes): string | null {
  const known = knownDifferences.find((one) => one.mode === mode && one.covers(cell, reference, ours));
  return known?.reason ?? null;
}
