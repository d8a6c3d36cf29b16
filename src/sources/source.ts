// What a Source is: Snapshots on demand, events of this Node, and its status.
import type { ClusterEvents } from "../manifests/cluster.ts";
import type { Kind } from "../manifests/objects.ts";
import type { Address } from "../model/address.ts";
import type { ClusterNode, Snapshot } from "../model/snapshot.ts";

export type Source = {
  /**
   * The next Snapshot is made when it is requested and something is new, so changes are merged while the consumer is
   * busy. The first is made when every resource was read once. One consumer at a time; ends when the signal aborts.
   */
  snapshots(signal: AbortSignal): AsyncIterable<Snapshot>;
  /** Every event of this Node, beginning with its current state. Ends when the signal aborts. */
  nodeEvents(signal: AbortSignal): AsyncIterable<NodeEvent>;
  /** What was received from the cluster so far. */
  events(): ClusterEvents;
  status(): SourceStatus;
};

/** The Source does not exist or did not respond; the message contains the cause. */
export class SourceError extends Error {}

export type NodeEvent =
  /** The cluster has no such Node. */
  | { readonly kind: "absent" }
  | { readonly kind: "present"; readonly node: ClusterNode }
  /** It was deleted; another of the same name may exist since. */
  | { readonly kind: "deleted" };

export type SourceStatus = {
  /** The address of the API server, if it is configured by address. */
  readonly server?: ServerAddress;
  /** Whether the first Snapshot could be made. */
  readonly synced: boolean;
  readonly resources: Readonly<Partial<Record<Kind, ResourceStatus>>>;
};

export type ServerAddress = { readonly address: Address; readonly port: number };

/** Times are milliseconds since 1970, unless noted otherwise. */
export type ResourceStatus = {
  readonly synced: boolean;
  /** Whether the last response was an error: forbidden, or not served. */
  readonly refused: boolean;
  readonly lastEventAt: number | null;
  /** The last request that failed. */
  readonly lastError: { readonly message: string; readonly at: number } | null;
  /** Whether requests fail: from the first that fails until a list or a watch succeeds. */
  readonly failing: boolean;
  /** The last expected re-list or re-watch: the version expired, the watch was idle, the connection ended. */
  readonly lastRestart: { readonly reason: string; readonly at: number } | null;
  /** Watches that were open and ended, for any reason. */
  readonly reconnects: number;
  /** Requests that failed and watches that we closed. */
  readonly failures: number;
  /** Complete lists after the first. */
  readonly relists: number;
  /** Since when the stream that is open now has been open. */
  readonly watchSince: number | null;
  /** In which encoding the last stream arrived; null for files, and before the first. */
  readonly encoding: "json" | "protobuf" | null;
  /** When data was last received, on the monotonic clock: ages are measured with it. */
  readonly heardAt: number | null;
};

/** Before anything was received. */
export const initialStatus: ResourceStatus = {
  synced: false,
  refused: false,
  lastEventAt: null,
  lastError: null,
  failing: false,
  lastRestart: null,
  reconnects: 0,
  failures: 0,
  relists: 0,
  watchSince: null,
  encoding: null,
  heardAt: null,
};
