// Tries every cell in both worlds: once, then more often, and again where chance may explain a difference.
import type { Mode } from "../reference/proxy.ts";
import { forgetAffinity } from "./affinity.ts";
import type { Sides } from "./arena.ts";
import type { Cell } from "./cells.ts";
import { agree, isAnswer } from "./compare.ts";
import { type Outcomes, observe } from "./observe.ts";

/** A cell, and the results of packets in each world. */
export type Tried = { readonly cell: Cell; readonly met: readonly [reference: Outcomes, ours: Outcomes] };

export async function tryCells(
  sides: Sides,
  mode: Mode,
  cells: readonly Cell[],
  signal: AbortSignal,
): Promise<readonly Tried[]> {
  const tried: readonly Tried[] = cells.map((cell) => ({ cell, met: [new Set(), new Set()] }));
  await tryAll(sides, tried, 1, signal);
  await tryAll(sides, tried.filter(isAnswered), 5, signal);
  // With five endpoints and 60 tries, one is missed once in a hundred thousand cells.
  for (const count of [6, 16, 32])
    await tryAll(
      sides,
      tried.filter((one) => !one.cell.sticky && differs(one)),
      count,
      signal,
    );
  // A client with session affinity reaches one endpoint; another only after the affinity is cleared.
  for (let round = 0; round < 40; round++) {
    const stuck = tried.filter((one) => one.cell.sticky && differs(one));
    if (stuck.length === 0) break;
    for (const { world } of sides) forgetAffinity(world.node, mode);
    await tryAll(sides, stuck, 1, signal);
  }
  return tried;
}

export function differs({ cell, met }: Tried): boolean {
  return !agree(cell, ...met);
}

/** Whether there was a response in at least one world. */
export function isAnswered({ met }: Tried): boolean {
  return met.some((outcomes) => [...outcomes].some(isAnswer));
}

/** Cells tried at the same time: enough to wait for a timeout only once, few enough for two cores. */
const wave = 400;

async function tryAll(
  sides: Sides,
  some: readonly Tried[],
  count: number,
  signal: AbortSignal,
): Promise<void> {
  for (let i = 0; i < some.length; i += wave) {
    signal.throwIfAborted();
    const now = some.slice(i, i + wave);
    await Promise.all(
      now.flatMap(({ cell, met }) => sides.map(({ world }, side) => observe(world, cell, count, met[side]!))),
    );
  }
}
