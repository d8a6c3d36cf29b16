// The table of targets in docs/benchmarks.md: wanted, reached and kube-proxy, from the results of the benchmarks that ran.
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
  row("idle", "idle, 500 × 2", "nftables, 500 × 2, WHO: CPU", "ms/s", ""),
];

/** A Markdown table; rows without a result have a dash. */
export function targetsTable(results: BenchResults): string {
  const lines = targets.map(({ title, wanted, unit, values }) => {
    const [ours, theirs] = [values(results, "turnout"), values(results, "kube-proxy")];
    const ratio = ours.length > 0 && theirs.length > 0 ? median(theirs) / median(ours) : Number.NaN;
    const cells = [title, limit(wanted, unit), cell(ours, unit), cell(theirs, unit)];
    return `| ${[...cells, Number.isFinite(ratio) ? `${shown(ratio)}×` : "–"].map((text) => text.trim()).join(" | ")} |`;
  });
  return [
    "| nftables mode | wanted | Turnout | kube-proxy | ratio |",
    "|---|---|---|---|---|",
    ...lines,
  ].join("\n");
}

function size(title: string, of: string, figure: keyof Figures, unit: string, wanted: string): Target {
  const values = ({ compare }: BenchResults, who: Who): readonly number[] =>
    (compare?.results ?? [])
      .filter((r) => r.mode === "nftables" && `${r.size.services}x${r.size.endpoints}` === of)
      .flatMap(({ figures }) => figures[who].map((one) => one[figure]));
  return { title, wanted, unit, values };
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
  return wanted === "0" ? "0" : `≤ ${wanted} ${unit}`;
}

function cell(values: readonly number[], unit: string): string {
  if (values.length === 0) return "–";
  const middle = `${shown(median(values))} ${unit}`.trim();
  return values.length === 1
    ? middle
    : `${middle} (${shown(Math.min(...values))}–${shown(Math.max(...values))})`;
}
