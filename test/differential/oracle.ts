// Compares two worlds on one cluster state: cell by cell, save by save, health check by health check.
import type { KubeObject } from "../reference/objects.ts";
import type { Mode } from "../reference/proxy.ts";
import type { Sides } from "./arena.ts";
import { type Cell, cellsOf, cellText } from "./cells.ts";
import { compareHealth } from "./health.ts";
import { reasonFor } from "./known.ts";
import type { Outcomes } from "./observe.ts";
import { differingLines } from "./saves.ts";
import { differs, isAnswered, type Tried, tryCells } from "./tries.ts";

export type Verdict = {
  readonly cells: number;
  /** Cells that differ for a known reason, by reason. */
  readonly explained: ReadonlyMap<string, number>;
  readonly unexplained: readonly Difference[];
  /** Cells with a response. */
  readonly answered: readonly Cell[];
};

/** `service` is the one to check alone; empty when there is none. */
export type Difference = { readonly service: string; readonly text: string };

export async function check(
  sides: Sides,
  mode: Mode,
  objects: readonly KubeObject[],
  signal: AbortSignal,
): Promise<Verdict> {
  const tried = await tryCells(sides, mode, cellsOf(objects), signal);
  const explained = new Map<string, number>();
  const unexplained: Difference[] = [];
  for (const one of tried.filter(differs)) {
    const reason = reasonFor(mode, one.cell, ...one.met);
    if (reason === null) unexplained.push(differenceOf(one));
    else explained.set(reason, (explained.get(reason) ?? 0) + 1);
  }
  if (mode === "iptables") unexplained.push(...differingSaves(sides));
  unexplained.push(...(await compareHealth(sides)));
  const answered = tried.filter(isAnswered).map(({ cell }) => cell);
  return { cells: tried.length, explained, unexplained, answered };
}

function differenceOf({ cell, met: [reference, ours] }: Tried): Difference {
  const list = (outcomes: Outcomes): string => [...outcomes].sort().join(", ");
  const text = `${cellText(cell)}\n    kube-proxy: ${list(reference)}\n    ours:       ${list(ours)}`;
  return { service: cell.service, text };
}

function differingSaves(sides: Sides): readonly Difference[] {
  const differences: Difference[] = [];
  for (const command of ["iptables-save", "ip6tables-save"]) {
    const [reference, ours] = sides.map(({ world }) => world.node.run(command));
    const lines = differingLines(reference!, ours!);
    if (lines.length > 0) differences.push({ service: "", text: `${command}:\n    ${lines.join("\n    ")}` });
  }
  return differences;
}
