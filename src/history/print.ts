// The history as text: each change with its cause, what it changed, and what was written.
import { printableLine } from "../model/printable.ts";
import type { Cause } from "../model/snapshot.ts";
import type { HistoryEntry, HistoryHead, ServiceChange, Written } from "./entry.ts";
import { beginning } from "./log.ts";

/** How a time is printed, from milliseconds since 1970. */
export type PrintTime = (ms: number) => string;

/** Of a change that concerns more ServicePorts, the first are listed. */
const mostChanges = 20;

/** Where the history begins and why, and whether it is saved. */
export function printHead({ beginsAt, dropped, limits, unsaved }: HistoryHead, time: PrintTime): string {
  if (limits.bytes === 0) return "this daemon keeps no history; start it with --history-size=8Mi\n";
  if (beginsAt === null) return "the history has not begun yet: the daemon has not read the cluster\n";
  const saved = unsaved === null ? "" : `! the history is not saved: ${printableLine(unsaved)}\n`;
  return `${beginning(beginsAt, dropped, time)}\n${saved}`;
}

export function printEntry(entry: HistoryEntry, time: PrintTime): string {
  const { at, changes, other, written, clockStepMs } = entry;
  const lines = [
    `${time(at)}  ${causesOf(entry)}`,
    ...(clockStepMs === 0 ? [] : [`  ${clockWords(clockStepMs)}`]),
    ...changes.slice(0, mostChanges).flatMap(changeLines),
    ...(changes.length > mostChanges
      ? [`  and ${changes.length - mostChanges} more; turnout history SERVICE or -o json lists them`]
      : []),
    ...other.map((words) => `  ${printableLine(words)}`),
    `  ${writtenWords(written)}`,
  ];
  return `${lines.join("\n")}\n`;
}

export function changeLines({ port, protocol, words }: ServiceChange): string[] {
  const name = `${port}${protocol === "tcp" ? "" : `/${protocol}`}`;
  return words.map((each) => `  ${printableLine(`${name} ${each}`)}`);
}

/** `EndpointSlice shop/web-x7k2p modified (resourceVersion 812)` */
export function causesOf({ origin, causes, moreCauses }: HistoryEntry): string {
  if (origin === "restart") return "changed while no daemon was running";
  if (causes.length === 0) return "changed";
  const most = 3;
  const more = causes.length - most + moreCauses;
  const shown = causes.slice(0, most).map(causeText);
  return printableLine(`${shown.join(", ")}${more > 0 ? ` and ${more} more objects` : ""}`);
}

function causeText({ kind, namespace, name, event, resourceVersion }: Cause): string {
  const version = resourceVersion === "" ? "" : ` (resourceVersion ${resourceVersion})`;
  return `${kind} ${namespace === "" ? "" : `${namespace}/`}${name} ${event}${version}`;
}

export function writtenWords(written: HistoryEntry["written"]): string {
  const families = Object.entries(written).map(([family, each]) => familyWords(family, each));
  return families.length === 0 ? "written: nothing" : `written: ${families.join("; ")}`;
}

function familyWords(family: string, { operations, latencyMs, together, refused, failed }: Written): string {
  const name = family === "ipv4" ? "IPv4" : "IPv6";
  if (failed !== null) return printableLine(`${name} failed: ${failed}`);
  const shared = together === 1 ? "" : ` for ${together} changes together`;
  const left = refused === 0 ? "" : `, ${refused} objects refused by the kernel`;
  return `${name} ${operations} operation${operations === 1 ? "" : "s"}${shared}, ${duration(latencyMs)} after the event${left}`;
}

export function clockWords(ms: number): string {
  return `the clock was set ${ms < 0 ? "back" : "forward"} by ${duration(Math.abs(ms))} before this change`;
}

/** `4 ms`, `1.2 s`, `5 min` or `3 h`. */
function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}
