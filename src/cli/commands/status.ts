// `turnout status`: prints the state that the daemon on this machine reports.

import { requiredSocket } from "../../inspect/status-socket.ts";
import { daemonStatus } from "../../inspect/target.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { printableLine } from "../../model/printable.ts";
import { printProblem } from "../../model/problem.ts";
import { limitText } from "../../observe/limits.ts";
import { saveHeap } from "../../observe/status/client.ts";
import type { Status } from "../../observe/status/status.ts";
import { burstMs, type PaceReport, share } from "../../sync/pace.ts";
import { command } from "../command.ts";
import type { CommandSpec } from "../flags.ts";
import { span } from "../span.ts";
import { rowOf } from "../status-row.ts";
import { daemonNodeFlag, daemonSourceFlag, outputFlag } from "../target-flags.ts";
import type { CommandWorld } from "./kube-proxy.ts";

export const statusSpec = {
  name: "status",
  summary: "print the state of the daemon on this machine",
  usage: ["[flags]"],
  flags: [
    daemonSourceFlag,
    daemonNodeFlag,
    {
      ...outputFlag,
      choices: ["text", "json", "row"],
      description:
        "output format; row: one line of tab-separated fields (node, mode, health, last Sync, drift, longest silence of a watch, version)",
    },
    {
      name: "heap",
      value: "FILE",
      example: "daemon.heapsnapshot",
      description:
        "write a heap snapshot of the daemon to this new file instead; it contains credentials, and the daemon is blocked while it is taken",
    },
  ],
  notes: ["Requires root."],
  examples: ["turnout status", "turnout status --source=playground --node=node-a"],
} as const satisfies CommandSpec;

export const status = command(statusSpec, async ({ flags }, world) => {
  const { source = "daemon", node = "node-a", output = "text", heap } = flags;
  const socket = requiredSocket(source, node, world);
  const reported = await daemonStatus(
    socket,
    "start one with turnout run, or select another, for example --source=daemon:SOCKET or --source=playground",
  );
  if (heap !== undefined) return writeHeap(socket, heap, world);
  const now = world.clock.wall();
  world.stdout(printAs(output, reported, now));
  return 0;
});

function printAs(output: "text" | "json" | "row", reported: Status, now: number): string {
  switch (output) {
    case "json":
      return `${JSON.stringify(reported, null, 2)}\n`;
    case "row":
      return rowOf(reported, now);
    case "text":
      return printStatus(reported, now);
  }
}

async function writeHeap(socket: string, file: string, world: CommandWorld): Promise<number> {
  if (file === "")
    throw new UsageError("--heap requires the name of a new file, for example --heap=daemon.heapsnapshot");
  try {
    await saveHeap(socket, file);
  } catch (error) {
    throw new UsageError(`cannot write a heap snapshot to ${file}: ${(error as Error).message}`);
  }
  world.stdout(
    `wrote ${file}; it contains credentials: keep it private, and open it in Chrome's developer tools\n`,
  );
  return 0;
}

export function printStatus(status: Status, now: number): string {
  const isStarting = status.families.length === 0;
  const rows: Row[] = [
    ["daemon", [`${status.version}, process ${status.pid}, up ${span(now - status.startedAt)}`]],
    ["node", [`${status.node}, ${status.mode} mode${isStarting ? "" : settled(status)}`]],
    ["source", [status.source]],
    ["waiting", status.waits === null ? [] : [waitText(status.waits, now)]],
    ...(isStarting ? [] : workRows(status, now)),
    ["watches", watchLines(status.watches, now)],
    ...(isStarting ? [] : troubleRows(status, now)),
  ];
  return rows
    .flatMap(([label, lines]) =>
      lines.map((line, i) => `${(i === 0 ? label : "").padEnd(9)} ${printableLine(line)}\n`),
    )
    .join("");
}

type Row = readonly [label: string, lines: readonly string[]];

/** Known at the end of start-up. */
function settled({ families, ownership }: Status): string {
  return `, ${families.join(" and ")}, table ${ownership}`;
}

function waitText({ for: what, since, until }: NonNullable<Status["waits"]>, now: number): string {
  const limit = until === null ? "" : `, at most ${span(until - now)} more`;
  return `for ${what}: ${span(now - since)} so far${limit}`;
}

function workRows(status: Status, now: number): Row[] {
  return [
    ["health", healthLines(status.health, now)],
    ["applied", status.families.map((family) => appliedText(family, status.lastSuccess[family], now))],
    ["syncs", status.syncs.slice(0, 5).map((sync) => syncText(sync, now))],
    ["latency", latencyLines(status.latency)],
    ["pace", Object.entries(status.pace ?? {}).map(([family, pace]) => `${family}: ${paceText(pace)}`)],
  ];
}

function latencyLines(latency: Status["latency"]): string[] {
  if (latency === undefined) return [];
  if (latency === null) return ["no change of endpoints yet"];
  const { p50, p99, samples } = latency;
  return [
    `p50 ${Math.round(p50)} ms, p99 ${Math.round(p99)} ms from a change of endpoints to the kernel, of the last ${count(samples, "change")}`,
  ];
}

function healthLines(health: Status["health"], now: number): string[] {
  if (health === undefined) return [];
  const reasons = health.reasons.map(
    ({ kind, family, since, message }) =>
      `${kind}${family === null ? "" : `, ${family}`}, for ${span(now - since)}: ${message}`,
  );
  return [health.healthy ? "healthy" : "UNHEALTHY", ...reasons];
}

function troubleRows(status: Status, now: number): Row[] {
  return [
    [
      "drift",
      status.drift.length === 0
        ? ["none"]
        : status.drift
            .slice(0, 5)
            .map(
              ({ at, family, differences, what }) =>
                `${span(now - at)} ago, ${family}: ${differences} repaired: ${what}`,
            ),
    ],
    ["limits", (status.limits ?? []).map((each) => `${each.name}: ${limitText(each)}`)],
    ["events", (status.events ?? []).slice(0, 5).map((event) => eventText(event, now))],
    ["addresses", interceptLines(status.intercepts)],
    ["problems", problemLines(status.problems)],
  ];
}

function eventText(
  { type, reason, regarding, note, lastAt, count: times, delivery }: NonNullable<Status["events"]>[number],
  now: number,
): string {
  const repeated = times === 1 ? "" : `, ${times} times`;
  return `${span(now - lastAt)} ago, ${type} ${reason}, ${regarding.kind} ${regarding.name}, ${delivery}${repeated}${note === "" ? "" : `: ${note}`}`;
}

function interceptLines(counts: Status["intercepts"]): string[] {
  if (counts === undefined) return [];
  const lines: [number, string][] = [
    [counts["external-ip node"], "external IPs are addresses of this node (CVE-2020-8554)"],
    [counts["external-ip api-server"], "external IPs are addresses of the API server (CVE-2020-8554)"],
    [
      counts["load-balancer-ip api-server"],
      "load-balancer IPs are addresses of the API server (CVE-2020-8554)",
    ],
    [counts["load-balancer-ip node"], "load-balancer IPs are addresses of this node"],
  ];
  return lines.filter(([count]) => count > 0).map(([count, text]) => `${count} ${text}`);
}

/** At most this many Problems are printed; a cluster may have thousands. */
const mostProblems = 20;

function problemLines(problems: Status["problems"]): string[] {
  if (problems.length === 0) return ["none"];
  const more = problems.length - mostProblems;
  return [
    ...problems.slice(0, mostProblems).map(printProblem),
    ...(more > 0 ? [`and ${more} more; -o json lists all`] : []),
  ];
}

function appliedText(family: string, at: number | undefined, now: number): string {
  return at === undefined ? `${family}: not yet` : `${family}: ${span(now - at)} ago`;
}

function syncText(
  {
    family,
    trigger,
    startedAt,
    finishedAt,
    changedPorts,
    operations,
    outcome,
    objects = [],
  }: Status["syncs"][number],
  now: number,
): string {
  const end =
    outcome.kind === "ok"
      ? outcome.refused.length === 0
        ? "ok"
        : `${outcome.refused.length} refused`
      : `FAILED: ${outcome.message}`;
  const work = `${count(changedPorts, "port")}, ${count(operations, "operation")}`;
  const cause = objects.length === 0 ? "" : `; ${objects.join(", ")}`;
  return `${span(now - finishedAt)} ago, ${family}, ${trigger}: ${work}, ${finishedAt - startedAt} ms, ${end}${cause}`;
}

/** The gap between the last Sync and the next change, and what it follows from. */
function paceText(pace: PaceReport): string {
  if (pace.kind === "period") return `${pace.gapMs} ms between Syncs, which minSyncPeriod sets`;
  const { costMs, budgetMs, gapMs, reason } = pace;
  const gap = `${Math.round(gapMs)} ms after the last Sync`;
  switch (reason) {
    case "budget":
      return `no gap: the last Sync used ${tenths(costMs)} ms of CPU, ${Math.floor(budgetMs)} of ${burstMs} ms are left`;
    case "cost":
      return `${gap}, which used ${tenths(costMs)} ms of CPU: Syncs may use ${share * 100} % of one core`;
    case "limit":
      return `${gap}, which used ${tenths(costMs)} ms of CPU: the longest gap`;
    case "failure":
      return `${gap}, which failed`;
  }
}

function tenths(ms: number): string {
  return ms < 10 ? ms.toFixed(1) : String(Math.round(ms));
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Kinds with the same state share a line, as all kinds read from files do. */
function watchLines(watches: Status["watches"], now: number): string[] {
  const kinds = new Map<string, string[]>();
  for (const [kind, watch] of Object.entries(watches)) {
    const text = watchText(watch, now);
    kinds.set(text, [...(kinds.get(text) ?? []), kind]);
  }
  return [...kinds].map(([text, names]) => `${names.join(", ")}: ${text}`);
}

const encodings = { json: "JSON", protobuf: "protobuf" } as const;

function watchText(watch: NonNullable<Status["watches"][keyof Status["watches"]]>, now: number): string {
  const age = watch.watchSince === null ? "not open" : `open for ${span(now - watch.watchSince)}`;
  const last = watch.lastEventAt === null ? "" : `, last event ${span(now - watch.lastEventAt)} ago`;
  const error =
    watch.lastError === null
      ? ""
      : `, last error ${span(now - watch.lastError.at)} ago: ${watch.lastError.message}`;
  const encoding = watch.encoding === null ? "" : `, ${encodings[watch.encoding]}`;
  return `${watch.synced ? "synced" : "not synced yet"}, ${age}${encoding}${last}${error}`;
}
