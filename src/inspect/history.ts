// Reads the history of a node's daemon, and selects a moment of it as a target.
import type { HistoryEntry, HistoryHead } from "../history/entry.ts";
import type { Variables } from "../model/environment.ts";
import { streamFromDaemon } from "../observe/status/client.ts";
import { requiredSocket } from "./status-socket.ts";
import { daemonStatus, isPlayground, type Target } from "./target.ts";
import { UsageError } from "./usage-error.ts";

/** Oldest first. */
export type HistoryAnswer = { readonly history: HistoryHead; readonly changes: readonly HistoryEntry[] };

/** Throws UsageError when the daemon does not respond, or is of a version without history. */
export async function readHistory(
  socket: string,
  query: Readonly<Record<string, string>>,
): Promise<HistoryAnswer> {
  const lines: (HistoryHead | HistoryEntry)[] = [];
  try {
    for await (const line of streamFromDaemon(socket, "/history", query))
      if (line.kind !== "removed") lines.push(line);
  } catch (error) {
    throw new UsageError(`the daemon at ${socket} closed the connection: ${(error as Error).message}; retry`);
  }
  const [head, ...entries] = lines;
  if (head?.kind !== "history")
    throw new UsageError(`the daemon at ${socket} has no history: it is of an earlier version`);
  return { history: head, changes: (entries as HistoryEntry[]).reverse() };
}

/** The status socket of the daemon that `--source` names. */
export async function historySocket(source: string, node: string, environment: Variables): Promise<string> {
  const socket = requiredSocket(source, node, { environment }, "; other sources have no history");
  await daemonStatus(
    socket,
    "start one with turnout run, or select another, for example --source=playground",
  );
  return socket;
}

/** The same target at a moment of the past, which only its daemon has. */
export function targetAt(target: Target, source: string | undefined, at: number): Target {
  if (target.fromDaemon || isPlayground(source ?? "")) return { ...target, fromDaemon: true, at };
  throw new UsageError(
    /^daemon(:|$)/.test(source ?? "daemon")
      ? "--at requires the daemon of this node, of the same version, and no --fresh or --node of another node"
      : "--at requires a daemon, which has the history: use --source=daemon or --source=playground",
  );
}
