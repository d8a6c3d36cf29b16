// What the page needs of a node: the state of a daemon, or that of a cluster which this process reads itself.
import type { ValidConfig } from "../config/config.ts";
import type { BothRoutes } from "../explain/resolve.ts";
import type { KernelView } from "../inspect/kernel-view.ts";
import type { Family } from "../model/address.ts";
import type { Problem } from "../model/problem.ts";
import type { PortKey, Snapshot } from "../model/snapshot.ts";
import type { Mode } from "../modes/mode.ts";
import type { RememberedSync, Status } from "../observe/status/status.ts";
import type { Packet } from "../routing/decide.ts";
import type { Routes } from "../routing/routes.ts";
import type { SourceSpec } from "../sources/index.ts";

export type PageNode = {
  readonly name: string;
  readonly version: string;
  readonly spec: SourceSpec;
  readonly mode: Mode;
  readonly config: () => ValidConfig;
  /** null: there is no daemon. */
  readonly status: () => Status | null;
  /** null: the cluster was not read yet. */
  readonly snapshot: () => Snapshot | null;
  /** Those that the last Sync of each family applied; null: not all families were synced yet. */
  readonly routes: () => BothRoutes | null;
  readonly problems: () => readonly Problem[];
  /** null: there is no kernel to compare with. */
  readonly kernel: ((routes: Routes, packet: Packet) => Promise<KernelView>) | null;
  /** Until the returned function is called. */
  readonly observe: (observer: NodeObserver) => () => void;
};

export type NodeObserver = {
  /** ServicePorts whose Routes may differ. */
  readonly changed: (family: Family, keys: ReadonlySet<PortKey>) => void;
  readonly synced: (record: RememberedSync) => void;
};
