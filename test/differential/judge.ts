// Compares two worlds cell by cell on one cluster state, with more tries where chance may explain a difference.
import type { KubeObject } from "../reference/objects.ts";
import type { Mode } from "../reference/proxy.ts";
import { forgetAffinity } from "./affinity.ts";
import type { Sides } from "./arena.ts";
import { type Cell, cellsOf, cellText } from "./cells.ts";
import { agree, isAnswer } from "./compare.ts";
import { compareHealth } from "./health.ts";
import { reasonFor } from "./known.ts";
import { type Outcomes, observe } from "./observe.ts";
import { differingLines } from "./saves.ts";

export type Verdict = {
  readonly cells: number;
  /** Cells that differ for a reason we know, by reason. */
  readonly explained: ReadonlyMap<string, number>;
  readonly unexplained: readonly Difference[];
  /** Cells in which somebody answers. */
  readonly answered: readonly Cell[];
};

export type Difference = { readonly service: string; readonly text: string };

type Judged = { readonly cell: Cell; readonly met: readonly [Outcomes, Outcomes] };

export async function judge(
  sides: Sides,
  mode: Mode,
  objects: readonly KubeObject[],
  signal: AbortSignal,
): Promise<Verdict> {
  const judged: Judged[] = cellsOf(objects).map((cell) => ({ cell, met: [new Set(), new Set()] }));
  const tries = async (some: readonly Judged[], count: number): Promise<void> => {
    for (let i = 0; i < some.length; i += wave) {
      signal.throwIfAborted();
      await Promise.all(
        some
          .slice(i, i + wave)
          .flatMap(({ cell, met }) =>
            sides.map(({ world }, side) => observe(world, cell, count, met[side]!)),
          ),
      );
    }
  };
  await tries(judged, 1);
  await tries(judged.filter(answers), 5);
  const open = (): Judged[] =>
    judged.filter(({ cell, met: [reference, ours] }) => !agree(cell, reference, ours));
  // With five endpoints and 60 tries, one is missed once in a hundred thousand cells.
  for (const count of [6, 16, 32])
    await tries(
      open().filter(({ cell }) => !cell.sticky),
      count,
    );
  // A client that sticks sees one endpoint; only when the node has forgotten it does it see another.
  const stuck = (): Judged[] => open().filter(({ cell }) => cell.sticky);
  for (let round = 0; round < 40 && stuck().length > 0; round++) {
    for (const { world } of sides) forgetAffinity(world.node, mode);
    await tries(stuck(), 1);
  }

  const explained = new Map<string, number>();
  const unexplained: Difference[] = [];
  for (const { cell, met } of open()) {
    const reason = reasonFor(mode, cell, ...met);
    if (reason !== null) explained.set(reason, (explained.get(reason) ?? 0) + 1);
    else unexplained.push({ service: cell.service, text: `${cellText(cell)}\n${textOf(met)}` });
  }
  if (mode === "iptables") unexplained.push(...differingSaves(sides));
  unexplained.push(...(await compareHealth(sides)));
  const answered = judged.filter(answers).map(({ cell }) => cell);
  return { cells: judged.length, explained, unexplained, answered };
}

function answers({ met }: Judged): boolean {
  return met.some((outcomes) => [...outcomes].some(isAnswer));
}

/** Cells tried at the same time: enough to wait for silence only once, few enough for two cores. */
const wave = 400;

function textOf([reference, ours]: readonly [Outcomes, Outcomes]): string {
  const list = (outcomes: Outcomes): string => [...outcomes].sort().join(", ");
  return `    kube-proxy: ${list(reference)}\n    ours:       ${list(ours)}`;
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
