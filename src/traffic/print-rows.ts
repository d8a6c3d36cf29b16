// Flows and sums of flows as tables for a terminal.
import { printableLine } from "../model/printable.ts";
import { portLabel } from "../model/snapshot.ts";
import { duration } from "./duration.ts";
import type { FlowRow } from "./flow-row.ts";
import { type FlowSums, openFlows, type PortTally } from "./tally.ts";

/** `wide` adds the kind of frontend, pod, node, packets, mark and zone, and the reason in full. */
export type TableStyle = "text" | "wide";

type Column = { readonly title: string; readonly of: (row: FlowRow) => string; readonly right?: true };

const columns: Readonly<Record<TableStyle, readonly Column[]>> = {
  text: [
    { title: "PROTO", of: ({ protocol }) => protocol },
    { title: "STATE", of: ({ state }) => state },
    { title: "CLIENT", of: ({ client }) => client },
    { title: "SERVICE", of: serviceText },
    { title: "DESTINATION", of: ({ destination }) => destination },
    { title: "ENDPOINT", of: ({ endpoint }) => endpoint ?? "-" },
    { title: "TIMEOUT", of: ({ timeoutSeconds }) => duration(timeoutSeconds), right: true },
    { title: "AGE", of: ({ ageSeconds }) => (ageSeconds === null ? "-" : duration(ageSeconds)), right: true },
    { title: "BYTES", of: bytesText, right: true },
    { title: "TODAY", of: todayText },
  ],
  wide: [
    { title: "PROTO", of: ({ protocol }) => protocol },
    { title: "STATE", of: ({ state }) => state },
    { title: "CLIENT", of: ({ client }) => client },
    { title: "SERVICE", of: serviceText },
    { title: "FRONTEND", of: ({ frontend }) => frontend ?? "-" },
    { title: "DESTINATION", of: ({ destination }) => destination },
    { title: "ENDPOINT", of: ({ endpoint }) => endpoint ?? "-" },
    { title: "POD", of: ({ pod }) => pod ?? "-" },
    { title: "NODE", of: ({ node }) => node ?? "-" },
    { title: "MASQ", of: ({ masqueraded }) => (masqueraded ? "yes" : "no") },
    { title: "TIMEOUT", of: ({ timeoutSeconds }) => duration(timeoutSeconds), right: true },
    { title: "AGE", of: ({ ageSeconds }) => (ageSeconds === null ? "-" : duration(ageSeconds)), right: true },
    { title: "PACKETS", of: packetsText, right: true },
    { title: "BYTES", of: bytesText, right: true },
    { title: "MARK", of: ({ mark }) => (mark === 0 ? "-" : `0x${mark.toString(16)}`) },
    { title: "ZONE", of: ({ zone }) => (zone === 0 ? "-" : String(zone)) },
    { title: "TODAY", of: (row) => todayText(row, "wide") },
  ],
};

export function printRows(rows: readonly FlowRow[], style: TableStyle): string {
  const shown = columns[style];
  return table(
    shown.map(({ title }) => title),
    rows.map((row) => shown.map(({ of }) => of(row))),
    shown.map(({ right }) => right === true),
  );
}

/** One line for a flow, as examples and `--follow` print it. */
export function flowLine(row: FlowRow): string {
  const { protocol, client, destination, endpoint, state } = row;
  const end = endpoint === null ? "" : ` → ${endpoint}`;
  return printableLine(`${protocol} ${client} → ${destination}${end}, ${state}`);
}

function serviceText({ service, standing }: FlowRow): string {
  if (service !== null) return service;
  return standing === "service-deleted" ? "(deleted)" : "-";
}

function bytesText({ counters }: FlowRow): string {
  return counters === null ? "-" : quantity(counters.original.bytes + counters.reply.bytes);
}

function packetsText({ counters }: FlowRow): string {
  return counters === null ? "-" : String(counters.original.packets + counters.reply.packets);
}

/** Whether the endpoint would be chosen again, and what it is where it would not. */
export function todayText(
  { today, standing, because }: Pick<FlowRow, "today" | "standing" | "because">,
  style: TableStyle = "text",
): string {
  if (today?.kind === "eligible") {
    const share = today.among === 1 ? "the only choice" : `1 of ${today.among}`;
    return style === "wide" ? `eligible, ${share}: ${today.because}` : `eligible, ${share}`;
  }
  if (today !== null) return style === "wide" ? `excluded: ${today.because}` : `excluded: ${today.reason}`;
  return style === "wide" ? `${standing}: ${because ?? ""}` : standing;
}

/** Sums by ServicePort, or by endpoint of each. */
export function printTallies(ports: Iterable<PortTally>, by: "service" | "endpoint"): string {
  const sorted = [...ports].sort(
    (a, b) => openFlows(b.sums) - openFlows(a.sums) || (a.port.key < b.port.key ? -1 : 1),
  );
  const sumTitles = ["ACTIVE", "OPENING", "CLOSING", "CLOSED", "PACKETS", "BYTES"];
  const numbers = sumTitles.map(() => true);
  const ofService = ({ port }: PortTally) => [portLabel(port), port.protocol];
  if (by === "service")
    return table(
      ["SERVICE", "PROTO", "ENDPOINTS", ...sumTitles],
      sorted.map((tally) => [
        ...ofService(tally),
        String(tally.port.endpoints.length),
        ...sumCells(tally.sums),
      ]),
      [false, false, true, ...numbers],
    );
  const rows = sorted.flatMap((tally) =>
    [...tally.endpoints]
      .sort(([a, x], [b, y]) => openFlows(y.sums) - openFlows(x.sums) || (a < b ? -1 : 1))
      .map(([name, { to, nodeName, sums }]) => [
        ...ofService(tally),
        name,
        to === "gone" ? "gone" : nodeName === "" ? "-" : nodeName,
        ...sumCells(sums),
      ]),
  );
  return table(["SERVICE", "PROTO", "ENDPOINT", "NODE", ...sumTitles], rows, [
    false,
    false,
    false,
    false,
    ...numbers,
  ]);
}

/** A sum over flows of which some are not counted is a lower bound. */
function sumCells(sums: FlowSums): string[] {
  const { active, opening, closing, closed, packets, bytes, uncounted } = sums;
  const flows = openFlows(sums) + closed;
  const counted = (text: string) => (uncounted === flows ? "-" : uncounted > 0 ? `≥${text}` : text);
  return [
    String(active),
    String(opening),
    String(closing),
    String(closed),
    counted(String(packets)),
    counted(quantity(bytes)),
  ];
}

/** `812`, `12.3k`, `4.5M`, `6.7G`. */
export function quantity(value: number): string {
  const units = ["", "k", "M", "G", "T", "P"];
  let rest = value;
  let unit = 0;
  while (rest >= 999.95 && unit < units.length - 1) {
    rest /= 1000;
    unit++;
  }
  return unit === 0 ? String(rest) : `${rest.toFixed(1)}${units[unit]}`;
}

/** Cells contain text from the cluster: it must not break a line. */
function table(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  isRight: readonly boolean[],
): string {
  const cells = [titles, ...rows.map((row) => row.map(printableLine))];
  const widths = titles.map((_, i) => cells.reduce((most, row) => Math.max(most, row[i]!.length), 0));
  return cells
    .map((row) =>
      row
        .map((cell, i) => (isRight[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
        .join("  ")
        .trimEnd()
        .concat("\n"),
    )
    .join("");
}
