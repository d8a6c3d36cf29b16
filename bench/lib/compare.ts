// Compares the real kube-proxy with Turnout at one size after the other: alternately, printed, written as JSON and as plots.
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release } from "node:os";
import { join } from "node:path";
import type { Mode } from "../../test/reference/proxy.ts";
import { type Size, sizeText } from "./cluster.ts";
import { type Figures, measure } from "./figures.ts";
import { median, shown } from "./measure.ts";
import { type Chart, drawCharts } from "./plot.ts";
import { onStage, programs } from "./run.ts";
import type { Stage } from "./stage.ts";

/** `reference`: in which rounds the real kube-proxy runs too; where it needs minutes only in the first, or in none. */
export type Run = {
  readonly mode: Mode;
  readonly size: Size;
  readonly reference: "all" | "first" | "none";
};
export type Who = "kube-proxy" | "turnout";
export type Result = Run & { readonly figures: Readonly<Record<Who, readonly Figures[]>> };

const columns: readonly (readonly [keyof Figures, string, string, number])[] = [
  ["ready", "ready", "s", 1],
  ["flip", "flip p50", "ms", 1000],
  ["add", "add p50", "ms", 1000],
  ["cpuToReady", "CPU to ready", "s", 1],
  ["cpuPerChange", "CPU per change", "ms", 1000],
  ["rss", "RSS", "MiB", 1],
  ["peak", "peak memory", "MiB", 1],
  ["firstPacketP50", "first packet p50", "µs", 1],
  ["firstPacketP99", "first packet p99", "µs", 1],
  ["connectionsPerSecond", "connections", "/s", 1],
];

/** How many rounds, changes in each, and seconds to wait for a program to get ready. */
export type Effort = { readonly rounds: number; readonly changes: number; readonly patience: number };

/** Without kube-proxy only ours is measured. */
export async function compareSizes(runs: readonly Run[], effort: Effort): Promise<readonly Result[]> {
  const found = new Map(programs());
  return onStage(async (stage) => {
    const results: Result[] = [];
    for (const run of runs) {
      const result = { ...run, figures: await alternate(stage, found, run, effort) };
      results.push(result);
      printResult(result, effort);
    }
    return results;
  });
}

async function alternate(
  stage: Stage,
  found: ReadonlyMap<string, string>,
  { mode, size, reference }: Run,
  { rounds, changes, patience }: Effort,
): Promise<Result["figures"]> {
  const figures: Record<Who, Figures[]> = { "kube-proxy": [], turnout: [] };
  for (let round = 0; round < rounds; round++)
    for (const who of ["kube-proxy", "turnout"] as const) {
      const program = found.get(who);
      const isLeftOut = reference === "none" || (reference === "first" && round > 0);
      if (program === undefined || (isLeftOut && who === "kube-proxy")) continue;
      const measured = await measure(stage, program, mode, size, { patience, changes });
      if (measured !== null) figures[who].push(measured);
      else console.log(`  ${who}, ${mode}, ${sizeText(size)}: not ready after ${patience} s`);
    }
  return figures;
}

function printResult({ mode, size, figures }: Result, { rounds }: Effort): void {
  console.log(
    `\n  ${mode}, ${sizeText(size)} (${rounds === 1 ? "one round" : `median of ${rounds}, lowest–highest`})`,
  );
  for (const [figure, title, unit, scale] of columns) {
    const [reference, ours] = (["kube-proxy", "turnout"] as const).map((who) =>
      figures[who].map((one) => one[figure] * scale),
    ) as [number[], number[]];
    const ratio =
      figure === "connectionsPerSecond" ? median(ours) / median(reference) : median(reference) / median(ours);
    console.log(
      `    ${title.padEnd(18)} kube-proxy ${spread(reference, unit).padEnd(28)} turnout ${spread(ours, unit).padEnd(28)} ${verdict(ratio)}`,
    );
  }
}

/** As JSON, with the machine. */
export function writeResults(results: readonly Result[], { rounds }: Effort): void {
  const file = process.env.TURNOUT_BENCH_RESULT;
  if (file === undefined) return;
  const machine = {
    node: process.version,
    linux: release(),
    cpu: cpus()[0]?.model ?? "",
    cores: cpus().length,
    load: loadavg()[0],
  };
  writeFileSync(
    file,
    `${JSON.stringify({ at: new Date().toISOString(), ...machine, rounds, results }, null, 2)}\n`,
  );
}

/** A plot for each mode, for docs/benchmarks.md. */
export function drawPlots(results: readonly Result[]): void {
  const folder = join(process.cwd(), "docs", "images");
  mkdirSync(folder, { recursive: true });
  for (const mode of new Set(results.map((result) => result.mode)))
    writeFileSync(
      join(folder, `compare-${mode}.svg`),
      drawCharts(chartsOf(results.filter((r) => r.mode === mode))),
    );
}

function chartsOf(results: readonly Result[]): readonly Chart[] {
  const colours: Record<Who, string> = { "kube-proxy": "#8a8a8a", turnout: "#0b7a5c" };
  return columns
    .filter(([figure]) => ["ready", "flip", "cpuPerChange", "rss"].includes(figure))
    .map(([figure, title, unit, scale]) => ({
      title,
      unit,
      series: (["kube-proxy", "turnout"] as const).map((who) => ({
        name: who,
        colour: colours[who],
        points: results
          .filter(({ figures }) => figures[who].length > 0)
          .map(({ size, figures }) => ({
            x: size.services,
            y: Math.max(median(figures[who].map((one) => one[figure] * scale)), 1e-3),
          })),
      })),
    }));
}

function verdict(ratio: number): string {
  if (Number.isNaN(ratio)) return "";
  return ratio >= 1 ? `${shown(ratio)}× better` : `${shown(1 / ratio)}× worse`;
}

function spread(values: readonly number[], unit: string): string {
  if (values.length === 0) return "–";
  if (values.length === 1) return `${shown(values[0]!)} ${unit}`;
  return `${shown(median(values))} ${unit} (${shown(Math.min(...values))}–${shown(Math.max(...values))})`;
}
