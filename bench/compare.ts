// Slow: the real kube-proxy and Turnout side by side, alternating: ready, flip, add, CPU, RSS, first packet, by cluster size.
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, release } from "node:os";
import { join } from "node:path";
import { findAssets } from "../test/assets.ts";
import { reasonToSkip } from "../test/kernel/netns.ts";
import type { Mode } from "../test/reference/proxy.ts";
import { type Size, sizeText } from "./lib/cluster.ts";
import { type Figures, measure } from "./lib/figures.ts";
import { median } from "./lib/measure.ts";
import { type Chart, drawCharts } from "./lib/plot.ts";
import { createStage, type Stage } from "./lib/stage.ts";

const rounds = Number(process.env.TURNOUT_ROUNDS ?? 3);
const changes = Number(process.env.TURNOUT_CHANGES ?? 10);
const patience = Number(process.env.TURNOUT_PATIENCE ?? 120);

/** `MODE:SERVICESxENDPOINTS`; with `!` only ours, where the real one would need too long. */
const sizes = (
  process.env.TURNOUT_SIZES ??
  "nftables:1000x10 nftables:5000x10 nftables:10000x10 nftables:30000x10! nftables:100000x1! iptables:1000x10 iptables:5000x2"
)
  .split(" ")
  .map(parseRun);

type Run = { readonly mode: Mode; readonly size: Size; readonly oursOnly: boolean };
type Who = "kube-proxy" | "turnout";
type Result = Run & { readonly figures: Readonly<Record<Who, readonly Figures[]>> };

const columns: readonly (readonly [keyof Figures, string, string, number])[] = [
  ["ready", "ready", "s", 1],
  ["flip", "flip p50", "ms", 1000],
  ["add", "add p50", "ms", 1000],
  ["cpuToReady", "CPU to ready", "s", 1],
  ["cpuPerChange", "CPU per change", "ms", 1000],
  ["rss", "RSS", "MiB", 1],
  ["firstPacketP50", "first packet p50", "µs", 1],
  ["firstPacketP99", "first packet p99", "µs", 1],
  ["connectionsPerSecond", "connections", "/s", 1],
];

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

async function main(): Promise<void> {
  const assets = findAssets("kube-proxy");
  const reason = reasonToSkip() ?? (assets.found ? null : assets.reason);
  if (reason !== null || !assets.found) {
    console.log(`  skipped: ${reason}`);
    return;
  }
  const programs = {
    "kube-proxy": assets.paths["kube-proxy"],
    turnout: process.env.TURNOUT_PROGRAM ?? join(process.cwd(), "bin", "kube-proxy"),
  };
  const stage = createStage();
  const results: Result[] = [];
  try {
    for (const run of sizes) {
      const result = { ...run, figures: await alternate(stage, programs, run) };
      results.push(result);
      printResult(result);
    }
  } finally {
    await stage.close();
  }
  write(results);
}

async function alternate(
  stage: Stage,
  programs: Readonly<Record<Who, string>>,
  { mode, size, oursOnly }: Run,
): Promise<Result["figures"]> {
  const figures: Record<Who, Figures[]> = { "kube-proxy": [], turnout: [] };
  for (let round = 0; round < rounds; round++)
    for (const who of ["kube-proxy", "turnout"] as const) {
      if (oursOnly && who === "kube-proxy") continue;
      const measured = await measure(stage, programs[who], mode, size, { patience, changes });
      if (measured !== null) figures[who].push(measured);
      else console.log(`  ${who}, ${mode}, ${sizeText(size)}: not ready after ${patience} s`);
    }
  return figures;
}

function printResult({ mode, size, figures }: Result): void {
  console.log(`\n  ${mode}, ${sizeText(size)} (median of ${rounds}, lowest–highest)`);
  for (const [figure, title, unit, scale] of columns) {
    const [reference, ours] = (["kube-proxy", "turnout"] as const).map((who) =>
      figures[who].map((one) => one[figure] * scale),
    ) as [number[], number[]];
    const ratio =
      figure === "connectionsPerSecond" ? median(ours) / median(reference) : median(reference) / median(ours);
    console.log(
      `    ${title.padEnd(18)} kube-proxy ${spread(reference, unit).padEnd(28)} turnout ${spread(ours, unit).padEnd(28)} ${Number.isNaN(ratio) ? "" : `${shown(ratio)}× better`}`,
    );
  }
}

function write(results: readonly Result[]): void {
  const file = process.env.TURNOUT_BENCH_RESULT;
  if (file === undefined) return;
  const machine = {
    node: process.version,
    linux: release(),
    cpu: cpus()[0]?.model ?? "",
    cores: cpus().length,
  };
  writeFileSync(
    file,
    `${JSON.stringify({ at: new Date().toISOString(), ...machine, rounds, results }, null, 2)}\n`,
  );
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

function spread(values: readonly number[], unit: string): string {
  if (values.length === 0) return "–";
  return `${shown(median(values))} ${unit} (${shown(Math.min(...values))}–${shown(Math.max(...values))})`;
}

function shown(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
}

function parseRun(text: string): Run {
  const match = /^(nftables|iptables):(\d+)x(\d+)(!?)$/.exec(text);
  if (match === null) throw new Error(`Cannot read TURNOUT_SIZES: "${text}" is not like nftables:1000x10`);
  const [, mode, services, endpoints, alone] = match;
  return {
    mode: mode as Mode,
    size: { services: Number(services), endpoints: Number(endpoints) },
    oursOnly: alone === "!",
  };
}
