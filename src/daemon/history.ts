// The part of the daemon that keeps the history of changes, and answers questions about it.
import { parseTo } from "../explain/question.ts";
import type { HistoryEntry, HistoryHead, NoState } from "../history/entry.ts";
import { HistoryLog } from "../history/log.ts";
import { type RemovedFrontends, removedFrontends } from "../history/removed.ts";
import { entriesOf, type HistoryQuery } from "../history/report.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type Clock, systemClock } from "../observe/clock.ts";
import { HistoryDirectory } from "../observe/history/directory.ts";
import { noHistory } from "../observe/history/off.ts";
import { HistoryRecorder, type HistoryStore, noStore } from "../observe/history/recorder.ts";
import type { Log } from "../observe/log/log.ts";
import type { LoopObserver } from "../sync/loop.ts";
import type { Part } from "./part.ts";
import type { OpenNode } from "./start/start.ts";

export type HistorySettings = {
  /** 0: no history. */
  readonly bytes: number;
  readonly ageMs: number;
  /** null: in memory only. */
  readonly directory: string | null;
};

export type History = Part & {
  readonly observer: Partial<LoopObserver>;
  /** The history as a whole, then its changes, newest first. */
  readonly lines: (
    query: URLSearchParams,
  ) => Iterable<HistoryHead | HistoryEntry | RemovedFrontends | undefined>;
  readonly stateAt: (at: number) => Promise<Snapshot | NoState>;
  /** Resolves when everything that arrived is recorded. */
  readonly idle: () => Promise<void>;
};

export function openHistory(
  settings: HistorySettings | undefined,
  node: Pick<OpenNode, "nodeName" | "families" | "settings">,
  log: Log,
  signal: AbortSignal,
  clock: Clock = systemClock,
): History {
  if (settings === undefined || settings.bytes === 0) return off(node.nodeName);
  const kept = new HistoryLog({ bytes: settings.bytes, ageMs: settings.ageMs });
  const { nodeName, families } = node;
  const recorder = new HistoryRecorder({
    log: kept,
    node: nodeName,
    families,
    clock,
    store: storeOf(settings, nodeName, log, signal, clock),
  });
  const here = { settings: (family: "ipv4" | "ipv6") => node.settings.resolved.settings[family] };
  return {
    observer: recorder,
    *lines(parameters) {
      yield recorder.head();
      if (parameters.get("removed") === "true") yield* removedFrontends(kept);
      else yield* entriesOf(kept, queryIn(parameters), here);
    },
    stateAt: (at) => recorder.stateAt(at),
    idle: () => recorder.idle(),
    run: () =>
      new Promise((_, reject) => {
        recorder.onError = reject;
      }),
    close: () => recorder.close(),
  };
}

function storeOf(
  { directory }: HistorySettings,
  node: string,
  log: Log,
  signal: AbortSignal,
  clock: Clock,
): HistoryStore {
  if (directory === null) return noStore;
  return new HistoryDirectory({
    directory,
    node,
    clock,
    log: log.in("observe/history/directory.ts"),
    signal,
  });
}

function off(nodeName: string): History {
  const reason = "this daemon keeps no history; start it with --history-size=8Mi";
  return {
    observer: {},
    lines: () => [noHistory(nodeName)],
    stateAt: async () => ({ kind: "unknown", reason }),
    idle: async () => {},
    run: async () => null,
  };
}

/** What is missing or not valid does not restrict the answer. */
function queryIn(parameters: URLSearchParams): HistoryQuery {
  const number = (name: string, absent: number) => {
    const value = Number(parameters.get(name) ?? Number.NaN);
    return Number.isFinite(value) ? value : absent;
  };
  const to = parseTo(parameters.get("to") ?? "");
  return {
    since: number("since", Number.NEGATIVE_INFINITY),
    after: number("after", 0),
    limit: number("limit", Number.POSITIVE_INFINITY),
    to: to.ok ? to.value : null,
    packets: packetsIn(parameters.get("packets")),
  };
}

function packetsIn(text: string | null): HistoryQuery["packets"] {
  if (text === "also") return text;
  return text === "true" ? "only" : "no";
}
