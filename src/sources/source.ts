// What a Source is: Snapshots on demand, word of this Node, and how well it is doing.
import type { ClusterEvents } from "../manifests/cluster.ts";
import type { Kind } from "../manifests/objects.ts";
import type { Address } from "../model/address.ts";
import type { ClusterNode, Snapshot } from "../model/snapshot.ts";

export type Source = {
  /**
   * The next Snapshot is made when it is asked for and something is new, so changes gather while the consumer is
   * busy. The first comes when everything is known once. One consumer at a time; ends when the signal aborts.
   */
  snapshots(signal: AbortSignal): AsyncIterable<Snapshot>;
  /** What happens to this Node, every step of it, beginning with how it stands now. Ends when the signal aborts. */
  nodeEvents(signal: AbortSignal): AsyncIterable<NodeEvent>;
  /** What the cluster told so far. */
  events(): ClusterEvents;
  status(): SourceStatus;
};

/** There is no such Source, or it did not answer; the text says why. */
export class SourceError extends Error {}

export type NodeEvent =
  /** The cluster does not know this Node. */
  | { readonly kind: "absent" }
  | { readonly kind: "present"; readonly node: ClusterNode }
  /** It was there, and was deleted; perhaps another of the same name has come since. */
  | { readonly kind: "deleted" };

export type SourceStatus = {
  /** Where the API server is, if it is named by its address. */
  readonly server?: ServerAddress;
  /** Whether the first Snapshot could be made. */
  readonly synced: boolean;
  readonly resources: Readonly<Partial<Record<Kind, ResourceStatus>>>;
};

export type ServerAddress = { readonly address: Address; readonly port: number };

/** Times are milliseconds since 1970, unless it says otherwise. */
export type ResourceStatus = {
  readonly synced: boolean;
  /** Whether the last answer was a refusal: forbidden, or not served. */
  readonly refused: boolean;
  readonly lastEventAt: number | null;
  /** The last request that failed. */
  readonly lastError: { readonly message: string; readonly at: number } | null;
  /** Whether requests fail: from the first that fails until a list or a watch is answered. */
  readonly failing: boolean;
  /** The last expected re-list or re-watch: the version expired, the watch was quiet, the connection ended. */
  readonly lastRestart: { readonly reason: string; readonly at: number } | null;
  /** Watches that were open and ended, for whatever reason. */
  readonly reconnects: number;
  /** Requests that failed and watches that were abandoned. */
  readonly failures: number;
  /** Complete lists after the first. */
  readonly relists: number;
  /** Since when the stream that is open now has been open. */
  readonly watchSince: number | null;
  /** The last sign of life, on the steady clock, which nobody can set: ages are measured with it. */
  readonly heardAt: number | null;
};

/** Before anything was heard. */
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
  heardAt: null,
};
