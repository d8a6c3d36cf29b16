// The JSON of each view, which the client in page/ reads: types only.

import type { Trace } from "../explain/trace.ts";
import type { WhatIf } from "../explain/what-if.ts";
import type { HistoryEntry, HistoryHead } from "../history/entry.ts";
import type { KernelView } from "../inspect/kernel-view.ts";
import type { Family } from "../model/address.ts";
import type { EndpointState, Protocol, TrafficPolicy } from "../model/snapshot.ts";
import type { Latency } from "../observe/recent-latency.ts";
import type { Status } from "../observe/status/status.ts";
import type { PortTraffic, TrafficReport } from "../observe/traffic/report.ts";
import type { TopRow } from "../observe/traffic/top-rows.ts";
import type { Frontend, Sender } from "../routing/routes.ts";
import type { SyncRecord } from "../sync/record.ts";
import type { FlowClass } from "../traffic/classify.ts";
import type { FlowRow } from "../traffic/flow-row.ts";

export type { Family, KernelView, Sender, Status, SyncRecord, Trace, WhatIf };

/** How much attention a Service needs; the first comes first in the table. */
export type Level = "trouble" | "warning" | "ok";

export type ServiceType = "ClusterIP" | "NodePort" | "LoadBalancer";

/** Counts of the Endpoints of a Service. */
export type EndpointCounts = Readonly<Record<EndpointState, number>>;

/** One line of the table of Services. */
export type ServiceRow = {
  /** `namespace/name` */
  readonly service: string;
  readonly type: ServiceType;
  /** `172.30.0.10:80`, `*:30080`, `172.30.0.13:53/udp`: the first few. */
  readonly frontends: readonly string[];
  readonly moreFrontends: number;
  /** Distinct addresses in the first IP family that the Service has. */
  readonly endpoints: EndpointCounts;
  readonly level: Level;
  /** Why, the most serious first; empty: nothing is unusual. */
  readonly reasons: readonly string[];
};

/** Whether traffic is counted; `at`: when it was read last, in milliseconds since 1970; null: not yet. */
export type TrafficState =
  | { readonly counted: true; readonly at: number | null }
  | { readonly counted: false; readonly because: string };

/** Of all ports of a Service together, as `turnout top` has them; null: not known, or not counted. */
export type RowTraffic = Pick<TopRow, "active" | "connections" | "connectionRate" | "refused"> & {
  /** That of the port with the most uneven use. */
  readonly skew: number | null;
};

/** `/api/services`; `traffic` of a row is null where traffic is not counted, or was not read yet. */
export type ServicesView = Omit<ServiceWindow, "rows"> & {
  readonly rows: readonly (ServiceRow & { readonly traffic: RowTraffic | null })[];
  readonly traffic: TrafficState;
};

/** Rows of the table, and counts of all. */
export type ServiceWindow = {
  readonly revision: number;
  readonly total: number;
  /** How many match the filters; `rows` are those from `offset` on. */
  readonly matched: number;
  readonly offset: number;
  readonly rows: readonly ServiceRow[];
  /** Of all that match the other filters. */
  readonly levels: Readonly<Record<Level, number>>;
  readonly types: Readonly<Record<ServiceType, number>>;
  /** Every namespace with its number of Services, by name. */
  readonly namespaces: readonly (readonly [string, number])[];
};

export type EndpointJson = {
  /** `10.0.1.4:8080` */
  readonly endpoint: string;
  readonly node: string;
  readonly state: EndpointState;
  readonly here: boolean;
};

/** What happens to packets of one sender at one Frontend. Numbers refer to `endpoints` of the port. */
export type Path = {
  readonly frontend: number;
  readonly sender: Sender;
  /** As `turnout explain FROM TO` takes them. */
  readonly from: string;
  readonly to: string;
  readonly outcome: Trace["outcome"];
  readonly because: readonly string[];
  /** All candidates are equally likely: each gets `1 / candidates`. */
  readonly candidates: number;
  readonly chosen: readonly number[];
  /** How many of the candidates see this node instead of the client. */
  readonly masqueraded: number;
  readonly leftOut: readonly { readonly endpoint: number; readonly reason: string }[];
  readonly clientSees: string;
};

export type FrontendJson = {
  readonly kind: Frontend["kind"];
  /** `172.30.0.10:80`, `*:30080` */
  readonly place: string;
  /** Networks that may use it; null: every client. */
  readonly allowed: readonly string[] | null;
};

/** One ServicePort, as a picture is drawn from it. */
export type PortJson = {
  readonly family: Family;
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
  readonly internalPolicy: TrafficPolicy;
  readonly externalPolicy: TrafficPolicy;
  readonly affinitySeconds: number | null;
  readonly healthCheckNodePort: number;
  /** The first few. */
  readonly frontends: readonly FrontendJson[];
  readonly moreFrontends: number;
  /** The first Frontends that another ServicePort holds. */
  readonly lost: readonly { readonly place: string; readonly holder: string }[];
  /** The first few. */
  readonly endpoints: readonly EndpointJson[];
  readonly moreEndpoints: number;
  readonly paths: readonly Path[];
};

/** `/api/service?name=…` */
export type ServiceView = {
  readonly revision: number;
  readonly row: ServiceRow;
  readonly ports: readonly PortJson[];
  readonly problems: readonly string[];
};

/** `/api/traffic?name=…` */
export type TrafficView = {
  readonly state: TrafficState;
  /** null: not counted, or not read yet. */
  readonly traffic: ServiceTraffic | null;
};

/** The report of `turnout top -o json`, of one Service. */
export type ServiceTraffic = Omit<TrafficReport, "ports"> & { readonly ports: readonly PortTrafficJson[] };

/** With the row that `turnout top` prints; rates are those since the reading before. */
export type PortTrafficJson = PortTraffic & { readonly row: TopRow };

/** `/api/flows?name=…`: as `turnout flows SERVICE -o json`, without the names of pods. */
export type FlowsView = {
  readonly node: string;
  readonly mode: string;
  /** When the table was read, in milliseconds since 1970. */
  readonly at: number;
  /** What cannot be shown in this mode; null: nothing. */
  readonly note: string | null;
  /** nf_conntrack_acct and nf_conntrack_timestamp; null: unknown. */
  readonly accounting: boolean | null;
  readonly timestamps: boolean | null;
  /** False: the table was resized meanwhile, so that flows may be missing or listed twice. */
  readonly complete: boolean;
  /** Flows in the table, and those of the Service. */
  readonly examined: number;
  readonly matched: number;
  /** Of those, the ones that `turnout doctor flows --wait=0` reports, in all and by class. */
  readonly stale: number;
  readonly classes: Readonly<Partial<Record<FlowClass, number>>>;
  /** The first few; stale ones first. */
  readonly flows: readonly FlowJson[];
};

export type FlowJson = Omit<FlowRow, "pod"> & {
  /** Whether the endpoint would be chosen again, as `turnout flows` prints it. */
  readonly words: string;
  /** Why it is stale; null: it is not. */
  readonly finding: { readonly class: FlowClass; readonly because: string } | null;
};

/** `/api/sticky?name=…`: clients that the kernel keeps at an endpoint (session affinity). */
export type StickyView = {
  /** Why they are not known; null: they are. */
  readonly note: string | null;
  /** Endpoints that have any, of all ports with session affinity. */
  readonly endpoints: readonly StickyEndpoint[];
};

export type StickyEndpoint = {
  readonly family: Family;
  readonly port: number;
  readonly protocol: Protocol;
  readonly endpoint: string;
  /** The set of the kernel. */
  readonly set: string;
  readonly count: number;
  /** The first few, those that were pinned last first. */
  readonly clients: readonly { readonly address: string; readonly seconds: number }[];
};

/** `/api/arrows?from=…&to=…`: rules and elements of the kernel beside each arrow, as `nft` prints them in nftables mode. */
export type ArrowsView = {
  /** On the way to the Service. */
  readonly service: readonly string[];
  /** From there to each endpoint; the first few. */
  readonly endpoints: readonly { readonly endpoint: string; readonly steps: readonly string[] }[];
  readonly more: number;
};

/** `/api/history?name=…[&after=SEQ][&limit=N]` */
export type HistoryView = {
  /** null: there is no daemon. */
  readonly history: HistoryHead | null;
  /** Why there is no history; null: there is one. */
  readonly note: string | null;
  /** Why it does not begin earlier; null: nothing was dropped. */
  readonly loss: string | null;
  /** Of this Service, newest first. */
  readonly changes: readonly ChangeJson[];
  /** Whether there are older ones. */
  readonly more: boolean;
};

/** A change as `turnout history -o json` has it, with packets that are handled differently, and as `turnout history` prints it. */
export type ChangeJson = HistoryEntry & {
  readonly text: {
    readonly cause: string;
    readonly clock: string | null;
    readonly lines: readonly string[];
    readonly written: string;
  };
};

/** `/api/explain?from=…&to=…[&live=1]`: as `turnout explain -o json`, with a picture of this packet alone. */
export type ExplainView = Trace & {
  readonly mode: string;
  /** One frontend and one path; null: the packet hits no Service. */
  readonly picture: PortJson | null;
  readonly kernel?: KernelView;
};

/** `/api/whatif?without=…[&without=…][&from=…&to=…]` */
export type WhatIfView = {
  /** As `turnout whatif -o json`; of many changes, the first. */
  readonly answer: WhatIf;
  readonly moreChanges: number;
  /** null: no packet was asked about. */
  readonly packet: PacketOutlook | null;
};

/** `after` is null where this node itself would be gone. In its picture, endpoints that would be gone are left out. */
export type PacketOutlook = { readonly before: ExplainView; readonly after: ExplainView | null };

/** `/api/places`: what `/api/whatif` can be asked about; the first few of each. */
export type PlacesView = { readonly nodes: readonly string[]; readonly zones: readonly string[] };

/** The status line: what is known of the node now. Times are milliseconds since 1970. */
export type Head = {
  readonly node: string;
  readonly mode: string;
  readonly version: string;
  /** As `--source` names it. */
  readonly source: string;
  readonly state: "healthy" | "unhealthy" | "starting" | "no daemon";
  /** Why it is not healthy, or what else the health check found. */
  readonly reasons: readonly string[];
  readonly startedAt: number | null;
  /** When the kernel was last compared with the Plan, in the family where that is longest ago. */
  readonly comparedAt: number | null;
  readonly drift: { readonly at: number; readonly differences: number; readonly what: string } | null;
  readonly lastSync: SyncPoint | null;
  /** From a change of endpoints until the kernel follows it, in milliseconds, of the latest changes; null: none yet. */
  readonly latency: Latency | null;
  /** The watch of the API server that has been silent for the longest time. */
  readonly watch: { readonly resource: string; readonly since: number } | null;
  readonly services: number;
  readonly endpoints: number;
  readonly problems: number;
  /** Whether the kernel of the node can be read for comparison. */
  readonly kernel: boolean;
};

/** One Sync in the chart of Syncs. */
export type SyncPoint = {
  readonly at: number;
  readonly ms: number;
  readonly family: Family;
  readonly trigger: SyncRecord["trigger"];
  /** What changed: `EndpointSlice shop/web-x7k2p modified`; empty after other causes. */
  readonly objects: readonly string[];
  readonly changedPorts: number;
  readonly operations: number;
  readonly outcome: "ok" | "refused" | "failed";
  readonly message: string;
};

/** `/api/node` */
export type NodeView = {
  readonly head: Head;
  /** As `turnout status -o json`; null without a daemon. */
  readonly status: Status | null;
  readonly configuration: string;
  /** Oldest first; those since the page was opened, and the few that the daemon remembers. */
  readonly syncs: readonly SyncPoint[];
  /** The first few. */
  readonly problems: readonly string[];
  readonly moreProblems: number;
};

/** An event of `/api/events`. A view is current while its `revision` is this one. */
export type Update = { readonly now: number; readonly revision: number; readonly head: Head };

/** `/api/page`: what this page is served for. */
export type PageJson = {
  readonly nodes: readonly string[];
  /** Flags with which the commands of `turnout` ask the same node; empty: the daemon of this machine. */
  readonly flags: string;
  /** Whether there are actions: only in a playground. */
  readonly actions: boolean;
};
