// `turnout status`: how the daemon on this machine is doing, as it says itself.

import { askDaemon, isPlayground, playgroundPid, playgroundSocket } from "../../inspect/target.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { printableLine } from "../../model/printable.ts";
import { printProblem } from "../../model/problem.ts";
import { saveHeap } from "../../observe/status/client.ts";
import { defaultStatusSocket, type Status } from "../../observe/status/status.ts";
import { readArguments } from "../arguments.ts";
import { outputOf } from "../output.ts";
import { withUsageErrors } from "../usage-error.ts";
import type { CommandWorld } from "./kube-proxy.ts";

export const statusHelp = `turnout status: how the daemon on this machine is doing

Usage: turnout status [--source=daemon[:SOCKET]|playground] [--node=NAME] [-o json] [--heap=FILE]

  --source    daemon (default): the one that runs here, asked through /run/turnout/status.sock; daemon:SOCKET: another;
              playground: one of the playground that runs here
  --node      which node of the playground (default node-a)
  -o          text (default) or json
  --heap      write a heap snapshot of the daemon to this new file instead; it contains credentials, and the daemon does
              nothing else while it is taken

Only root may ask.
`;

export function status(argv: readonly string[], world: CommandWorld): Promise<number> {
  return withUsageErrors("status", world, async () => {
    const { given, help } = readArguments(argv, {
      flags: ["source", "node", "o", "output", "heap"],
      words: { most: 0, instead: "say for example: turnout status --source=playground --node=node-a" },
    });
    if (help) {
      world.stdout(statusHelp);
      return 0;
    }
    const output = outputOf(given);
    const socket = socketOf(given.source ?? "daemon", given.node ?? "node-a");
    const told = await askDaemon(
      socket,
      "Start one with turnout run, or say which to ask, for example --source=daemon:SOCKET or --source=playground",
    );
    if (given.heap !== undefined) return writeHeap(socket, given.heap, world);
    const now = world.clock.wall();
    world.stdout(output === "json" ? `${JSON.stringify(told, null, 2)}\n` : printStatus(told, now));
    return 0;
  });
}

async function writeHeap(socket: string, file: string, world: CommandWorld): Promise<number> {
  if (file === "")
    throw new UsageError("--heap needs the name of a new file, for example --heap=daemon.heapsnapshot");
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

function socketOf(source: string, node: string): string {
  if (isPlayground(source)) return playgroundSocket(playgroundPid(source), node);
  const [, socket] = /^daemon(?::(.+))?$/.exec(source) ?? [];
  if (!source.startsWith("daemon"))
    throw new UsageError(
      `--source must be daemon, daemon:SOCKET or playground, not ${JSON.stringify(source)}`,
    );
  return socket ?? defaultStatusSocket;
}

export function printStatus(told: Status, now: number): string {
  const isStarting = told.families.length === 0;
  const rows: Row[] = [
    ["daemon", [`${told.version}, process ${told.pid}, for ${span(now - told.startedAt)}`]],
    ["node", [`${told.node}, ${told.mode} mode${isStarting ? "" : settled(told)}`]],
    ["source", [told.source]],
    ["waits", told.waits === null ? [] : [waitText(told.waits, now)]],
    ...(isStarting ? [] : workRows(told, now)),
    ["watches", watchLines(told.watches, now)],
    ...(isStarting ? [] : troubleRows(told, now)),
  ];
  return rows
    .flatMap(([label, lines]) =>
      lines.map((line, i) => `${(i === 0 ? label : "").padEnd(9)} ${printableLine(line)}\n`),
    )
    .join("");
}

type Row = readonly [label: string, lines: readonly string[]];

/** By the end of start-up. */
function settled({ families, ownership }: Status): string {
  return `, ${families.join(" and ")}, table ${ownership}`;
}

function waitText({ for: what, since, until }: NonNullable<Status["waits"]>, now: number): string {
  const limit = until === null ? "" : `, and for another ${span(until - now)} at most`;
  return `for ${what}: since ${span(now - since)}${limit}`;
}

function workRows(told: Status, now: number): Row[] {
  return [
    ["in place", told.families.map((family) => inPlace(family, told.lastSuccess[family], now))],
    ["syncs", told.syncs.slice(0, 5).map((sync) => syncText(sync, now))],
  ];
}

function troubleRows(told: Status, now: number): Row[] {
  return [
    [
      "drift",
      told.drift.length === 0
        ? ["none seen"]
        : told.drift
            .slice(0, 5)
            .map(
              ({ at, family, differences, what }) =>
                `${span(now - at)} ago, ${family}: ${differences} repaired: ${what}`,
            ),
    ],
    ["addresses", interceptLines(told.intercepts)],
    ["problems", problemLines(told.problems)],
  ];
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

/** As many Problems are printed; a cluster may have thousands. */
const fewProblems = 20;

function problemLines(problems: Status["problems"]): string[] {
  if (problems.length === 0) return ["none"];
  const more = problems.length - fewProblems;
  return [
    ...problems.slice(0, fewProblems).map(printProblem),
    ...(more > 0 ? [`and ${more} more: -o json lists them all`] : []),
  ];
}

function inPlace(family: string, at: number | undefined, now: number): string {
  return at === undefined ? `${family}: not yet` : `${family}: since ${span(now - at)}`;
}

function syncText(
  { family, trigger, startedAt, finishedAt, changedPorts, operations, outcome }: Status["syncs"][number],
  now: number,
): string {
  const end =
    outcome.kind === "ok"
      ? outcome.refused.length === 0
        ? "ok"
        : `${outcome.refused.length} refused`
      : `FAILED: ${outcome.message}`;
  const work = `${count(changedPorts, "port")}, ${count(operations, "operation")}`;
  return `${span(now - finishedAt)} ago, ${family}, ${trigger}: ${work}, ${finishedAt - startedAt} ms, ${end}`;
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

/** Kinds of which the same is to be told share a line, as all in files do. */
function watchLines(watches: Status["watches"], now: number): string[] {
  const kinds = new Map<string, string[]>();
  for (const [kind, watch] of Object.entries(watches)) {
    const text = watchText(watch, now);
    kinds.set(text, [...(kinds.get(text) ?? []), kind]);
  }
  return [...kinds].map(([text, names]) => `${names.join(", ")}: ${text}`);
}

function watchText(watch: NonNullable<Status["watches"][keyof Status["watches"]]>, now: number): string {
  const age = watch.watchSince === null ? "not open" : `open for ${span(now - watch.watchSince)}`;
  const last = watch.lastEventAt === null ? "" : `, last word ${span(now - watch.lastEventAt)} ago`;
  const error =
    watch.lastError === null
      ? ""
      : `, last error ${span(now - watch.lastError.at)} ago: ${watch.lastError.message}`;
  return `${watch.synced ? "known" : "not known yet"}, ${age}${last}${error}`;
}

function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`;
}
