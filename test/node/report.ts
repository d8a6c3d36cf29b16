// The results of upstream's tests and of the disturbances side by side, as text.
import type { Failures } from "./chaos.ts";
import type { Outcome, Results } from "./e2e.ts";
import type { Count } from "./requests.ts";

export type Report = {
  /** Of the programs and the kernel: name → version. */
  readonly versions: Readonly<Record<string, string>>;
  readonly runs: readonly Run[];
  readonly disturbed: readonly Disturbed[];
};

export type Run = {
  /** `Turnout, nftables`. */
  readonly label: string;
  /** The run of the real kube-proxy that it is compared with; null: reported only. */
  readonly baseline: string | null;
  readonly took: Took;
  readonly results: Results;
};

export type Disturbed = {
  readonly label: string;
  readonly took: Took;
  readonly failures: readonly Failures[];
};

/** When something ran, for how long, and the machine's mean load in the minute before it ended. */
export type Took = { readonly date: string; readonly minutes: number; readonly load: number };

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

/** Disturbances that Turnout did not complete, or after which requests still failed: `label: disturbance`. */
export function unrepaired(disturbed: readonly Disturbed[]): string[] {
  return disturbed
    .filter(({ label }) => label.startsWith("Turnout"))
    .flatMap(({ label, failures }) =>
      failures.flatMap(({ disturbance, pod, outside, problem }) => [
        ...(problem === undefined ? [] : [`${label}: ${disturbance}: ${problem}`]),
        ...(pod.served && outside.served
          ? []
          : [`${label}: requests still failed at the end: ${disturbance}`]),
      ]),
    );
}

/** The versions, a line for each run, a line for each spec, and the table of disturbances. */
export function printReport({ versions, runs, disturbed }: Report): string {
  const all = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [`With ${all.join(", ")}.`, runTable(runs), specTable(runs), chaosTable(disturbed)]
    .filter((part) => part !== "")
    .join("\n\n")
    .concat("\n");
}

function runTable(runs: readonly Run[]): string {
  const rows = runs.map(({ label, took, results }) => {
    const count = (outcome: Outcome): string =>
      String([...results.values()].filter((result) => result.outcome === outcome).length);
    return [label, count("passed"), count("failed"), count("skipped"), took.date, ...timeOf(took)];
  });
  return table(["upstream's specs", "passed", "failed", "skipped", "date", "minutes", "load"], rows);
}

/** Names without their tags. */
function specTable(runs: readonly Run[]): string {
  const specs = [...new Set(runs.flatMap(({ results }) => [...results.keys()]))];
  const rows = specs.map((spec) => [
    spec
      .replace("[sig-network] ", "")
      .replace("[Feature:IPv6DualStack]", "Dual-stack:")
      .replaceAll(/ \[[^\]]*\]/g, ""),
    ...runs.map(({ results }) => results.get(spec)?.outcome ?? "–"),
  ]);
  return table(["spec", ...runs.map(({ label }) => label)], rows.sort(byFirst));
}

/** One line per disturbance, a column for each proxy: failed requests from a pod, then from outside. */
function chaosTable(disturbed: readonly Disturbed[]): string {
  const names = [
    ...new Set(disturbed.flatMap(({ failures }) => failures.map(({ disturbance }) => disturbance))),
  ];
  const cell = ({ failures }: Disturbed, name: string): string => {
    const found = failures.find(({ disturbance }) => disturbance === name);
    if (found === undefined) return "–";
    const note = found.problem === undefined ? "" : " (not completed)";
    return `${failed(found.pod)}; ${failed(found.outside)}${note}`;
  };
  const rows = names.map((name) => [name, ...disturbed.map((each) => cell(each, name))]);
  const times = disturbed.map(({ took }) => `${took.date}, ${timeOf(took).join(" min, load ")}`);
  return table(
    ["failed requests from a pod; from outside", ...disturbed.map(({ label }) => label)],
    rows.length === 0 ? [] : [...rows, ["date, duration, load", ...times]],
  );
}

/** Empty without rows. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return rows.length === 0
    ? ""
    : [line(head), `|${head.map(() => "---|").join("")}`, ...rows.map(line)].join("\n");
}

function timeOf({ minutes, load }: Took): string[] {
  return [minutes.toFixed(0), load.toFixed(0)];
}

function byFirst([a = ""]: readonly string[], [b = ""]: readonly string[]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** `12 of 2,100`; with an asterisk where requests still failed at the end, and with how long the sender did not run. */
export function failed({ sent, failed: count, served, pausedMs }: Count): string {
  const paused = pausedMs === 0 ? "" : ` (paused for ${(pausedMs / 1000).toFixed(1)} s)`;
  return `${count.toLocaleString("en")} of ${sent.toLocaleString("en")}${served ? "" : " *"}${paused}`;
}

function firstLine(text: string): string {
  return text.split("\n")[0]!.slice(0, 300);
}
