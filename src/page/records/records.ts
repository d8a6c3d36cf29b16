// What only a daemon has of its node, besides the cluster: the history of changes, traffic, tracked flows, and what its kernel holds.
import type { HistoryEntry, HistoryHead } from "../../history/entry.ts";
import type { RemovedFrontends } from "../../history/removed.ts";
import type { KernelWalks } from "./arrows.ts";
import type { FlowRecords } from "./flows.ts";
import type { PinnedClients } from "./sticky.ts";
import type { TrafficRecords } from "./traffic.ts";

export type NodeRecords = {
  /** As `/history` of the status socket: the history as a whole, then changes, newest first, or what was removed; undefined: other work may go in between. */
  readonly history: (
    query: URLSearchParams,
  ) => Iterable<HistoryHead | HistoryEntry | RemovedFrontends | undefined>;
  readonly traffic: TrafficRecords;
  readonly flows: FlowRecords;
  readonly walks: KernelWalks;
  /** null: the mode does not report them. */
  readonly pinned: PinnedClients | null;
};
