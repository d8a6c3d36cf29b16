// The results of upstream's tests side by side, as text and as JSON.
import type { Failures } from "./chaos.ts";
import type { Outcome, Results } from "./e2e.ts";
import type { Count } from "./requests.ts";

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

/** One line per disturbance, a column for each proxy: failed requests from a pod, then from outside. */
export function chaosTable(disturbed: ReadonlyMap<string, readonly Failures[]>): string {
  const labels = [...disturbed.keys()];
  const names = [...new Set([...disturbed.values()].flat().map(({ disturbance }) => disturbance))];
  if (names.length === 0) return "";
  const cell = (label: string, name: string): string => {
    const found = disturbed.get(label)?.find(({ disturbance }) => disturbance === name);
    return found === undefined ? "–" : `${failed(found.pod)}; ${failed(found.outside)}`;
  };
  return [
    `| failed requests from a pod; from outside | ${labels.join(" | ")} |`,
    `|---|${labels.map(() => "---").join("|")}|`,
    ...names.map((name) => `| ${name} | ${labels.map((label) => cell(label, name)).join(" | ")} |`),
    "",
  ].join("\n");
}

/** `12 of 2,100`; with an asterisk where requests still failed at the end. */
export function failed({ sent, failed: count, served }: Count): string {
  return `${count.toLocaleString("en")} of ${sent.toLocaleString("en")}${served ? "" : " *"}`;
}

function firstLine(text: string): string {
  return text.split("\n")[0]!.slice(0, 300);
}
