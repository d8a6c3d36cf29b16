// The tables at the top of docs/benchmarks.md, from the results of the benchmarks that ran: targets (wanted, reached, kube-proxy), and all sizes.
import type { Result, Who } from "./compare.ts";
import type { Figures } from "./figures.ts";
import { median, shown } from "./measure.ts";

/** What benchmarks wrote, by name; those that did not run are absent. */
export type BenchResults = {
  readonly compare?: { readonly results: readonly Result[] };
} & {
  readonly [Name in "churn" | "recovery" | "idle"]?: { readonly rows: readonly ResultRow[] };
};

type ResultRow = { readonly what: string; readonly values: readonly number[] };

type Target = {
  readonly title: string;
  readonly wanted: string;
  readonly unit: string;
  readonly values: (results: BenchResults, who: Who) => readonly number[];
};

const fiveTimes = "≥ 5×";
const sameAs = "kube-proxy's";

const targets: readonly Target[] = [
  ...[20, 100].flatMap((rate): Target[] => [
    row("churn", `${rate} changes/s, p50`, `WHO, ${rate}/s tcp: p50`, "ms", rate === 20 ? "5" : "10"),
    row("churn", `${rate} changes/s, p99`, `WHO, ${rate}/s tcp: p99`, "ms", rate === 20 ? "25" : "40"),
  ]),
  row("churn", "a new Service answers", "WHO, new Service: p50", "ms", "15"),
  row("churn", "CPU per change, 20 changes/s", "WHO, 20/s tcp: CPU per change", "ms", "2"),
  row("churn", "CPU per change, 20 changes/s, UDP", "WHO, 20/s udp: CPU per change", "ms", "2"),
  size("10,000 × 10, ready", "10000x10", "ready", "s", "1.4"),
  size("10,000 × 10, RSS", "10000x10", "rss", "MiB", "120"),
  size("30,000 × 10, ready", "30000x10", "ready", "s", "4"),
  size("30,000 × 10, peak memory", "30000x10", "peak", "MiB", "350"),
  size("44,000 × 1, ready", "44000x1", "ready", "s", "3"),
  size("5,000 × 50, ready", "5000x50", "ready", "s", "2.5"),
  size("100,000 × 1, ready", "100000x1", "ready", "s", "6"),
  size("100,000 × 1, peak memory", "100000x1", "peak", "MiB", "350"),
  row(
    "recovery",
    "restart with nothing changed, CPU",
    "WHO, nftables, 10,000 × 10: restart, CPU",
    "s",
    "0.8",
  ),
  row(
    "recovery",
    "restart with nothing changed, kernel events",
    "WHO, nftables, 10,000 × 10: restart, kernel events",
    "",
    "0",
  ),
  row(
    "recovery",
    "longest gap after `nft flush ruleset`",
    "WHO, nftables, 10,000 × 10: flush, longest gap",
    "ms",
    "150",
  ),
  row("idle", "500 × 2, only probed, every second: CPU", "nftables, 500 × 2, WHO: CPU", "ms/s", ""),
  ...(["5000x2", "10000x10"] as const).flatMap((of) => [
    size(`iptables mode, ${sizeName(of)}, ready`, of, "ready", "s", fiveTimes, "iptables"),
    size(`iptables mode, ${sizeName(of)}, flip`, of, "flip", "ms", fiveTimes, "iptables"),
    size(`iptables mode, ${sizeName(of)}, add`, of, "add", "ms", fiveTimes, "iptables"),
    size(`iptables mode, ${sizeName(of)}, CPU to ready`, of, "cpuToReady", "s", fiveTimes, "iptables"),
    size(`iptables mode, ${sizeName(of)}, CPU per change`, of, "cpuPerChange", "ms", fiveTimes, "iptables"),
    size(`iptables mode, ${sizeName(of)}, RSS`, of, "rss", "MiB", sameAs, "iptables"),
  ]),
];

/** A Markdown table; rows without a result have a dash. */
export function targetsTable(results: BenchResults): string {
  const lines = targets.map(({ title, wanted, unit, values }) => {
    const [ours, theirs] = [values(results, "turnout"), values(results, "kube-proxy")];
    const ratio = ours.length > 0 && theirs.length > 0 ? median(theirs) / median(ours) : Number.NaN;
    const cells = [title, limit(wanted, unit), cell(ours, unit), cell(theirs, unit)];
    return `| ${[...cells, Number.isFinite(ratio) ? `${shown(ratio)}×` : "–"].map((text) => text.trim()).join(" | ")} |`;
  });
  return ["| | wanted | Turnout | kube-proxy | ratio |", "|---|---|---|---|---|", ...lines].join("\n");
}

/** In nftables mode, unless noted otherwise. */
function size(
  title: string,
  of: string,
  figure: keyof Figures,
  unit: string,
  wanted: string,
  mode: Result["mode"] = "nftables",
): Target {
  const scale = scaleOf(unit);
  const values = ({ compare }: BenchResults, who: Who): readonly number[] =>
    (compare?.results ?? [])
      .filter((r) => r.mode === mode && `${r.size.services}x${r.size.endpoints}` === of)
      .flatMap(({ figures }) => figures[who].map((one) => one[figure] * scale));
  return { title, wanted, unit, values };
}

/** Times are measured in seconds. */
function scaleOf(unit: string): number {
  return unit === "ms" ? 1000 : 1;
}

function sizeName(of: string): string {
  return of
    .split("x")
    .map((count) => Number(count).toLocaleString("en"))
    .join(" × ");
}

/** `WHO` in the name of a row stands for the program. */
function row(
  bench: "churn" | "recovery" | "idle",
  title: string,
  name: string,
  unit: string,
  wanted: string,
): Target {
  const values = (results: BenchResults, who: Who): readonly number[] =>
    results[bench]?.rows.find(({ what }) => what === name.replace("WHO", who))?.values ?? [];
  return { title, wanted, unit, values };
}

function limit(wanted: string, unit: string): string {
  if (wanted === "") return "–";
  if (wanted === fiveTimes) return wanted;
  if (wanted === sameAs) return `≤ ${wanted}`;
  return wanted === "0" ? "0" : `≤ ${wanted} ${unit}`;
}

function cell(values: readonly number[], unit: string): string {
  if (values.length === 0) return "–";
  const middle = `${shown(median(values))} ${unit}`.trim();
  return values.length === 1
    ? middle
    : `${middle} (${shown(Math.min(...values))}–${shown(Math.max(...values))})`;
}

const sizeColumns: readonly (readonly [title: string, figure: keyof Figures, unit: string])[] = [
  ["ready", "ready", "s"],
  ["flip", "flip", "ms"],
  ["add", "add", "ms"],
  ["CPU to ready", "cpuToReady", "s"],
  ["CPU per change", "cpuPerChange", "ms"],
  ["RSS", "rss", "MiB"],
  ["first packet", "firstPacketP50", "µs"],
];

/** Medians of both programs at every size, as a Markdown table: *kube-proxy → Turnout (ratio)*. */
export function sizesTable({ compare }: BenchResults): string {
  const rows = (compare?.results ?? []).map(({ mode, size: of, figures }) => {
    const cells = sizeColumns.map(([, figure, unit]) => {
      const scale = scaleOf(unit);
      const [theirs, ours] = (["kube-proxy", "turnout"] as const).map((who) =>
        figures[who].map((one) => one[figure] * scale),
      ) as [number[], number[]];
      return pair(theirs, ours, unit);
    });
    return `| ${[mode, sizeName(`${of.services}x${of.endpoints}`), ...cells].join(" | ")} |`;
  });
  const titles = ["mode", "Services × endpoints", ...sizeColumns.map(([title]) => title)];
  return [`| ${titles.join(" | ")} |`, `|${"---|".repeat(titles.length)}`, ...rows].join("\n");
}

function pair(theirs: readonly number[], ours: readonly number[], unit: string): string {
  if (ours.length === 0) return "–";
  if (theirs.length === 0) return `${shown(median(ours))} ${unit}`;
  const ratio = median(theirs) / median(ours);
  return `${shown(median(theirs))} → ${shown(median(ours))} ${unit} (${shown(ratio)}×)`;
}
