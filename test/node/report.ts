// The results of upstream's tests side by side, as text and as JSON.
import type { Outcome, Results } from "./e2e.ts";

export type Run = {
  /** `Turnout, nftables`. */
  readonly label: string;
  /** The run of the real kube-proxy that it is compared with; null: reported only. */
  readonly baseline: string | null;
  readonly results: Results;
};

/** Specs that failed with Turnout and not with the kube-proxy it is compared with: `label: spec: message`. */
export function regressions(runs: readonly Run[]): string[] {
  return runs.flatMap(({ label, baseline, results }) => {
    if (baseline === null) return [];
    const reference = runs.find((run) => run.label === baseline);
    return [...results]
      .filter(
        ([spec, { outcome }]) => outcome === "failed" && reference?.results.get(spec)?.outcome !== "failed",
      )
      .map(([spec, { message }]) => `${label}: ${spec}: ${firstLine(message)}`);
  });
}

/** One line per run, then one per spec that not all runs passed. */
export function summary(runs: readonly Run[]): string {
  const specs = [...new Set(runs.flatMap(({ results }) => [...results.keys()]))].sort();
  const lines = [
    "| run | passed | failed | skipped |",
    "|---|---|---|---|",
    ...runs.map(({ label, results }) => {
      const count = (outcome: Outcome): number =>
        [...results.values()].filter((result) => result.outcome === outcome).length;
      return `| ${label} | ${count("passed")} | ${count("failed")} | ${count("skipped")} |`;
    }),
    "",
    `| spec | ${runs.map(({ label }) => label).join(" | ")} |`,
    `|---|${runs.map(() => "---").join("|")}|`,
    ...specs.map(
      (spec) =>
        `| ${spec.replace("[sig-network] ", "")} | ${runs.map(({ results }) => results.get(spec)?.outcome ?? "–").join(" | ")} |`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}

function firstLine(text: string): string {
  return text.split("\n")[0]!.slice(0, 300);
}
