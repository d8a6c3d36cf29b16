// The answer of a daemon that keeps no history, or has not begun one.
import type { HistoryHead } from "../../history/entry.ts";

export function noHistory(node: string): HistoryHead {
  return {
    kind: "history",
    node,
    beginsAt: null,
    dropped: null,
    entries: 0,
    bytes: 0,
    lastSeq: 0,
    limits: { bytes: 0, ageMs: 0 },
    directory: null,
    unsaved: null,
  };
}
