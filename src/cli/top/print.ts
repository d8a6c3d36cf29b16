// The table of `turnout top`, as wide as the terminal: columns that do not fit are left out, least important first.
import { printableLine } from "../../model/printable.ts";
import type { Coverage, TrafficReport } from "../../observe/traffic/report.ts";
import type { EndpointRow, TopRow } from "../../observe/traffic/top-rows.ts";
import { span } from "../span.ts";

export type Screen = {
  readonly width: number;
  /** Most lines of the table; null: all. */
  readonly lines: number | null;
  readonly endpoints: boolean;
  /** Milliseconds since 1970. */
  readonly now: number;
};

type Column = {
  readonly title: string;
  readonly of: (row: TopRow) => string;
  readonly ofEndpoint?: (row: EndpointRow) => string;
  /** Columns with larger numbers are left out first. */
  readonly rank: number;
  readonly left?: true;
};

const columns: readonly Column[] = [
  {
    title: "SERVICE",
    of: ({ service }) => service,
    ofEndpoint: ({ endpoint }) => `  ${endpoint}`,
    rank: 0,
    left: true,
  },
  { title: "PORT", of: ({ port }) => port, rank: 2, left: true },
  {
    title: "CONN/S",
    of: ({ connectionRate }) => rate(connectionRate),
    ofEndpoint: ({ connectionRate }) => rate(connectionRate),
    rank: 3,
  },
  {
    title: "CONNS",
    of: ({ connections }) => count(connections),
    ofEndpoint: ({ connections }) => count(connections),
    rank: 4,
  },
  { title: "ACTIVE", of: ({ active }) => count(active), ofEndpoint: ({ active }) => count(active), rank: 1 },
  { title: "IN/S", of: ({ bytesInRate }) => bytes(bytesInRate), rank: 6 },
  { title: "OUT/S", of: ({ bytesOutRate }) => bytes(bytesOutRate), rank: 5 },
  { title: "IN", of: ({ bytesIn }) => bytes(bytesIn), rank: 10 },
  { title: "OUT", of: ({ bytesOut }) => bytes(bytesOut), rank: 9 },
  { title: "REFUSED", of: ({ refused }) => count(refused), rank: 7 },
  { title: "SKEW", of: ({ skew }) => (skew === null ? unknown : `${skew.toFixed(1)}x`), rank: 8 },
];

const unknown = "-";
const gap = 2;

export function printTop(rows: readonly TopRow[], report: TrafficReport, screen: Screen): string {
  const shown = rows.slice(0, screen.lines ?? rows.length);
  const cells = shown.flatMap((row) => [
    columns.map((column) => printableLine(column.of(row))),
    ...(screen.endpoints
      ? row.endpoints.map((each) => columns.map(({ ofEndpoint }) => printableLine(ofEndpoint?.(each) ?? "")))
      : []),
  ]);
  const more = rows.length - shown.length;
  const lines = [
    ...notes(report, screen.now),
    ...(rows.length === 0 ? ["no Service has had traffic"] : table(cells, screen.width)),
    ...(more > 0 ? [`and ${more} more`] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function table(cells: readonly (readonly string[])[], width: number): string[] {
  const widths = columns.map(({ title }, i) =>
    cells.reduce((width, row) => Math.max(width, row[i]!.length), title.length),
  );
  const known = columns.flatMap((_, i) =>
    cells.some((row) => row[i] !== "" && row[i] !== unknown) ? [i] : [],
  );
  const kept = fitting(known, widths, width);
  const line = (row: readonly string[]) =>
    kept
      .map((i) => (columns[i]!.left ? row[i]!.padEnd(widths[i]!) : row[i]!.padStart(widths[i]!)))
      .join(" ".repeat(gap))
      .trimEnd();
  return [line(columns.map(({ title }) => title)), ...cells.map(line)].map((text) => cut(text, width));
}

/** Those of the columns that fit; the first is always there. */
function fitting(all: readonly number[], widths: readonly number[], width: number): number[] {
  const kept = [...all];
  const total = () => kept.reduce((sum, i) => sum + widths[i]! + gap, -gap);
  while (kept.length > 1 && total() > width) {
    const worst = kept.reduce((a, b) => (columns[b]!.rank > columns[a]!.rank ? b : a));
    kept.splice(kept.indexOf(worst), 1);
  }
  return kept;
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(1, width - 1))}…`;
}

/** What is not counted, and what is not known. */
function notes(report: TrafficReport, now: number): string[] {
  const { counters, flows, setting } = report;
  if (setting === "off")
    return [
      "! only active connections: --traffic of the daemon is off; services counts connections and bytes",
    ];
  return [...coverage("connections", counters, now), ...coverage("packets and bytes", flows, now)];
}

function coverage(what: string, covered: Coverage, now: number): string[] {
  if (!covered.counted) return [`! ${what} are not counted: ${covered.because}`];
  const last = covered.gaps.at(-1);
  if (last === undefined) return [];
  const others = covered.gaps.length > 1 ? `, and ${covered.gaps.length - 1} more before that` : "";
  const [from, to] = [last.from, last.to].map((at) => new Date(at).toISOString().slice(11, 19));
  return [`! ${what} are unknown from ${from} to ${to} UTC, ${span(now - last.to)} ago${others}`];
}

function count(value: number | null): string {
  return value === null ? unknown : scaled(value, 100_000, 1000, ["", "k", "M", "G", "T"]);
}

function rate(value: number | null): string {
  if (value === null) return unknown;
  return value > 0 && value < 10 ? value.toFixed(1) : count(Math.round(value));
}

function bytes(value: number | null): string {
  return value === null ? unknown : `${scaled(value, 10_000, 1024, ["", "Ki", "Mi", "Gi", "Ti", "Pi"])}B`;
}

/** Exact below a limit. */
function scaled(value: number, exact: number, base: number, units: readonly string[]): string {
  let [rest, unit] = [value, 0];
  while (rest >= (unit === 0 ? exact : base) && unit < units.length - 1) {
    rest /= base;
    unit++;
  }
  return unit === 0 ? String(Math.round(rest)) : `${rest.toFixed(1)}${units[unit]}`;
}
