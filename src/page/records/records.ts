// What only a daemon has of its node, besides the cluster: the history of changes, traffic, tracked flows, and clients that are pinned to endpoints.
import type { HistoryEntry, HistoryHead } from "../../history/entry.ts";
import type { FlowRecords } from "./flows.ts";
import type { PinnedClients } from "./sticky.ts";
import type { TrafficRecords } from "./traffic.ts";

export type NodeRecords = {
  /** As `/history` of the status socket: the history as a whole, then changes, newest first; undefined: other work may go in between. */
  readonly history: (query: URLSearchParams) => Iterable<HistoryHead | HistoryEntry | undefined>;
  readonly traffic: TrafficRecords;
  readonly flows: FlowRecords;
  /** null: the mode does not report them. */
  readonly pinned: PinnedClients | null;
};
