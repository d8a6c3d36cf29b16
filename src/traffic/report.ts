// The report of `turnout doctor flows`: counts, examples and reasons by class, and how full the table is. Pure.
import type { FlowView } from "../model/flow.ts";
import { printableLine } from "../model/printable.ts";
import { portLabel } from "../model/snapshot.ts";
import type { Attribution } from "./attribute.ts";
import { classMeanings, type Finding, type FlowClass, flowClasses, mayDelete } from "./classify.ts";
import type { Exclusion } from "./eligibility.ts";
import type { FlowRow } from "./flow-row.ts";
import { flowLine } from "./print-rows.ts";
import { type FlowSums, FlowTally, openFlows, type PortTally } from "./tally.ts";
import type { TopCount } from "./top-counts.ts";

/** How full the table is; counters are sums since the start of the machine. */
export type TableFacts = {
  readonly entries: number;
  readonly maxEntries: number | null;
  readonly insertFailed: number;
  readonly drop: number;
  readonly earlyDrop: number;
};

export type ClassReport = {
  readonly class: FlowClass;
  readonly meaning: string;
  readonly count: number;
  /** Of these, connections that `--delete` never removes. */
  readonly established: number;
  /** Of the class `not-eligible`. */
  readonly exclusions: Readonly<Partial<Record<Exclusion, number>>>;
  readonly examples: readonly { readonly flow: FlowRow; readonly because: string }[];
};

export type TableReport = TableFacts & {
  readonly result: "ok" | "warning" | "failed";
  readonly details: readonly string[];
  /** What fills the table. */
  readonly clients: readonly TopCount[];
  readonly services: readonly { readonly service: string; readonly flows: number }[];
};

export type FlowReport = {
  readonly flows: number;
  readonly ofServices: number;
  readonly classes: readonly ClassReport[];
  readonly table: TableReport;
};

const mostExamples = 3;
const mostFillers = 3;

/** Collects findings of a reading; keeps a few examples of each class. */
export class FlowFindings {
  readonly #tally = new FlowTally();
  readonly #classes = new Map<
    FlowClass,
    {
      count: number;
      established: number;
      readonly exclusions: Partial<Record<Exclusion, number>>;
      readonly examples: { readonly flow: FlowRow; readonly because: string }[];
    }
  >();

  add(flow: FlowView, attribution: Attribution, finding: Finding | null, row: () => FlowRow): void {
    this.#tally.add(flow, attribution);
    if (finding === null) return;
    let found = this.#classes.get(finding.class);
    if (found === undefined) {
      found = { count: 0, established: 0, exclusions: {}, examples: [] };
      this.#classes.set(finding.class, found);
    }
    found.count++;
    if (!mayDelete(flow)) found.established++;
    if (finding.exclusion !== undefined)
      found.exclusions[finding.exclusion] = (found.exclusions[finding.exclusion] ?? 0) + 1;
    if (found.examples.length < mostExamples) found.examples.push({ flow: row(), because: finding.because });
  }

  /** `before`: the same facts some seconds earlier; null: only one reading was made. */
  report(
    table: TableFacts,
    before: { readonly facts: TableFacts; readonly seconds: number } | null,
  ): FlowReport {
    const { all, other } = this.#tally;
    const classes = flowClasses.map((name) => ({
      class: name,
      meaning: classMeanings[name],
      ...(this.#classes.get(name) ?? { count: 0, established: 0, exclusions: {}, examples: [] }),
    }));
    return {
      flows: flowsIn(all),
      ofServices: flowsIn(all) - flowsIn(other),
      classes,
      table: { ...table, ...tableResult(table, before), ...this.#fillers() },
    };
  }

  #fillers(): Pick<TableReport, "clients" | "services"> {
    const services = [...this.#tally.ports]
      .map(({ port, sums }: PortTally) => ({ service: portLabel(port), flows: flowsIn(sums) }))
      .sort((a, b) => b.flows - a.flows || (a.service < b.service ? -1 : 1))
      .slice(0, mostFillers);
    return { clients: this.#tally.clients.top(mostFillers), services };
  }
}

function flowsIn(sums: FlowSums): number {
  return openFlows(sums) + sums.closed;
}

const fullPercent = 95;
const fillingPercent = 75;

/** Counters since the start of the machine may be old: only what grows now is a failure. */
function tableResult(
  table: TableFacts,
  before: { readonly facts: TableFacts; readonly seconds: number } | null,
): Pick<TableReport, "result" | "details"> {
  const { entries: size, maxEntries, drop, earlyDrop, insertFailed } = table;
  const percent = maxEntries === null || maxEntries === 0 ? null : Math.floor((100 * size) / maxEntries);
  const fill =
    percent === null ? entries(size) : `${number(size)} of ${number(maxEntries!)} entries (${percent} %)`;
  const grown = (name: "drop" | "earlyDrop" | "insertFailed") =>
    before === null ? 0 : table[name] - before.facts[name];
  const span = before === null ? "" : `, in the last ${before.seconds} s`;
  const lines = [
    count(drop, grown("drop"), span, "packets of new connections were dropped: the table was full"),
    count(earlyDrop, grown("earlyDrop"), span, "entries were removed early to make room (early_drop)"),
    count(
      insertFailed,
      grown("insertFailed"),
      span,
      "new flows were dropped because their tuple was taken (insert_failed)",
    ),
  ].filter((line) => line !== null);
  const isFull = (percent ?? 0) >= fullPercent || grown("drop") > 0 || grown("earlyDrop") > 0;
  const isFilling = (percent ?? 0) >= fillingPercent || grown("insertFailed") > 0 || drop + earlyDrop > 0;
  const advice = isFull ? ": raise conntrack.maxPerCore, or stop what fills it" : "";
  return {
    result: isFull ? "failed" : isFilling ? "warning" : "ok",
    details: [`${fill}${advice}`, ...lines],
  };
}

function count(total: number, grown: number, span: string, what: string): string | null {
  if (total === 0) return null;
  return `${number(total)} ${what}${grown > 0 ? `, ${number(grown)} of them${span.slice(1)}` : ""}`;
}

/** What `--delete` and `--reset-tcp` did. */
export type Deletion = {
  /** What was named: classes, or `tcp` with the endpoint. */
  readonly named: readonly string[];
  readonly deleted: number;
  /** Connections of the named classes that were kept. */
  readonly kept: number;
};

/** 0: nothing was found, or all of it was deleted; 3: findings remain, or the table needs attention; 4: it is full or drops. */
export function exitCodeOf({ classes, table }: FlowReport, deletion: Deletion | null): 0 | 3 | 4 {
  if (table.result === "failed") return 4;
  const found = classes.reduce((sum, each) => sum + each.count, 0);
  const left = found - (deletion?.deleted ?? 0);
  return left > 0 || table.result === "warning" ? 3 : 0;
}

export function printReport(
  { node, mode }: { readonly node: string; readonly mode: string },
  report: FlowReport,
  deletion: Deletion | null,
): string {
  const head = `${node}, ${mode} mode: ${number(report.flows)} flows, ${number(report.ofServices)} of Services`;
  const rows = [...report.classes.map(classRow), tableRow(report.table)];
  const lines = rows.flatMap(({ result, name, details }) =>
    details.map((detail, i) =>
      i === 0 ? `${result.padEnd(9)} ${name.padEnd(15)} ${detail}` : `${"".padEnd(25)} ${detail}`,
    ),
  );
  const last = deletion === null ? adviceLines(report) : deletionLines(deletion);
  return `${[head, ...lines.map(printableLine), ...last].join("\n")}\n`;
}

type Row = { readonly result: string; readonly name: string; readonly details: readonly string[] };

function classRow({
  class: name,
  meaning,
  count: found,
  established,
  exclusions,
  examples,
}: ClassReport): Row {
  if (found === 0) return { result: "ok", name, details: ["none"] };
  const reasons = Object.entries(exclusions).map(([reason, times]) => `${number(times)} ${reason}`);
  const parts = [
    ...(reasons.length === 0 ? [] : [reasons.join(", ")]),
    ...(established === 0 ? [] : [`${number(established)} established`]),
  ];
  const total = `${number(found)}${parts.length === 0 ? "" : ` (${parts.join("; ")})`}: ${meaning}`;
  const lines = examples.flatMap(({ flow, because }) => [`${flowLine(flow)}: ${because}`]);
  const more = found - examples.length;
  return {
    result: "found",
    name,
    details: [total, ...lines, ...(more > 0 ? [`and ${number(more)} more`] : [])],
  };
}

function tableRow({ result, details, clients, services }: TableReport): Row {
  const fillers =
    result === "ok"
      ? []
      : [
          ...clients.map(
            ({ name, count: flows, error }) =>
              `client ${name}: ${error === 0 ? "" : "at most "}${entries(flows)}`,
          ),
          ...services.map(({ service, flows }) => `Service ${service}: ${entries(flows)}`),
        ];
  return { result, name: "table", details: [...details, ...fillers] };
}

/** How to delete what leads nowhere. A flow to an endpoint that is not eligible may still be in use: it is not among it. */
function adviceLines({ classes }: FlowReport): string[] {
  const dead = classes.filter(({ class: name }) => name !== "not-eligible");
  const named = dead.filter((each) => each.count > each.established).map(({ class: name }) => name);
  const isGone = dead.some(({ class: name, established }) => name === "endpoint-gone" && established > 0);
  const ways = [
    ...(named.length === 0 ? [] : [`--delete=${named.join(",")}`]),
    ...(isGone ? ["--reset-tcp=IP:PORT for established connections to an endpoint that is gone"] : []),
  ];
  return ways.length === 0 ? [] : [`nothing was deleted; to delete entries: ${ways.join("; ")}`];
}

function deletionLines({ named, deleted, kept }: Deletion): string[] {
  const rest = kept === 0 ? "" : `; kept ${number(kept)} established, see --reset-tcp`;
  return [`deleted ${entries(deleted)}: ${named.join(", ")}${rest}`];
}

function entries(count: number): string {
  return `${number(count)} ${count === 1 ? "entry" : "entries"}`;
}

function number(value: number): string {
  return value.toLocaleString("en");
}
