// The view "History" of a Service: its changes in the words of `turnout history`, with what happened to packets before and after.
import { parseTo } from "../../explain/question.ts";
import type { HistoryEntry, HistoryHead, ServiceChange } from "../../history/entry.ts";
import { lossText } from "../../history/log.ts";
import { causesOf, changeLines, clockWords, printHead, writtenWords } from "../../history/print.ts";
import { nextTurn } from "../../model/steps.ts";
import { type ViewAnswer, viewAnswer, viewError } from "../../observe/status/page-views.ts";
import type { ChangeJson, HistoryView } from "../json.ts";
import type { NodeRecords } from "./records.ts";

const defaultChanges = 50;
const mostChanges = 200;
/** A Service may have thousands of endpoints, and each is named. */
const mostCharacters = 1_000;

/** `records`: null without a daemon. */
export async function changesView(
  records: Pick<NodeRecords, "history"> | null,
  query: URLSearchParams,
): Promise<ViewAnswer> {
  const name = query.get("name") ?? "";
  const to = parseTo(`svc/${name}`);
  if (!to.ok || to.value.kind !== "service" || to.value.namespace === null || to.value.port !== null)
    return viewError(400, `invalid Service ${JSON.stringify(name)}; use for example name=shop/web`);
  if (records === null) return viewAnswer(200, withoutDaemon);
  const limit = numberIn(query.get("limit"), defaultChanges, mostChanges);
  const after = numberIn(query.get("after"), 0, Number.MAX_SAFE_INTEGER);
  const asked = { to: `svc/${name}`, packets: "also", after: String(after), limit: String(limit + 1) };
  let head: HistoryHead | null = null;
  const entries: HistoryEntry[] = [];
  for (const line of records.history(new URLSearchParams(asked))) {
    if (line === undefined) await nextTurn();
    else if (line.kind === "history") head = line;
    else if (line.kind === "change") entries.push(line);
  }
  return viewAnswer(200, viewOf(head!, entries, limit));
}

const withoutDaemon: HistoryView = {
  history: null,
  note: "there is no daemon, and only a daemon keeps a history",
  loss: null,
  changes: [],
  more: false,
};

function viewOf(head: HistoryHead, entries: readonly HistoryEntry[], limit: number): HistoryView {
  const { beginsAt, dropped } = head;
  return {
    history: head,
    // Without a time in it.
    note: beginsAt === null ? printHead(head, String).trim() : null,
    loss: dropped === null ? null : lossText(dropped),
    changes: entries.slice(0, limit).map(changeJson),
    more: entries.length > limit,
  };
}

function changeJson(entry: HistoryEntry): ChangeJson {
  const changes = entry.changes.map(bounded);
  return {
    ...entry,
    changes,
    text: {
      cause: causesOf(entry),
      clock: entry.clockStepMs === 0 ? null : clockWords(entry.clockStepMs),
      lines: changes.flatMap(changeLines).map((line) => line.trim()),
      written: writtenWords(entry.written),
    },
  };
}

function bounded(change: ServiceChange): ServiceChange {
  const frontends = change.frontends!.map(({ frontend, fates: results }) => ({
    frontend,
    fates: results.map(({ senders, before, after }) => ({ senders, before: cut(before), after: cut(after) })),
  }));
  return { ...change, frontends };
}

function cut(text: string | null): string | null {
  return text === null || text.length <= mostCharacters ? text : `${text.slice(0, mostCharacters)}…`;
}

function numberIn(text: string | null, absent: number, most: number): number {
  return text !== null && /^\d{1,15}$/.test(text) ? Math.min(Number(text), most) : absent;
}
