// One flow as `turnout flows -o json` prints it, with its Service, its endpoint, and whether that would be chosen again.
import { joinHostPort } from "../model/address.ts";
import type { Counters, FlowView } from "../model/flow.ts";
import { portLabel } from "../model/snapshot.ts";
import type { Frontend } from "../routing/routes.ts";
import { type Activity, activityOf, isReplied, protocolOf } from "./activity.ts";
import type { Attribution, ServiceFlow } from "./attribute.ts";
import type { Eligibility, EligibilityOf } from "./eligibility.ts";

export type FlowRow = {
  /** `tcp`, `udp` or `sctp`; the number of any other protocol. */
  readonly protocol: string;
  /** Of TCP and SCTP the state, of others `replied` or `unreplied`. */
  readonly state: string;
  readonly phase: Activity;
  readonly client: string;
  readonly destination: string;
  /** Where answers come from; null: the flow was not translated. */
  readonly endpoint: string | null;
  /** `shop/web:http`; null: not a flow of a Service, or of one that is gone. */
  readonly service: string | null;
  readonly frontend: Frontend["kind"] | null;
  /** listed: an endpoint of the Service; other: not a flow of a Service. */
  readonly standing: "listed" | "gone" | "relay" | "untranslated" | "service-deleted" | "other";
  /** Node of the endpoint; null: unknown. */
  readonly node: string | null;
  /** Pod of the endpoint; null: unknown. */
  readonly pod: string | null;
  /** Whether a new connection of this client could reach the endpoint; null: there is no endpoint to choose. */
  readonly today: Eligibility | null;
  /** Why it has this standing; null for a listed endpoint. */
  readonly because: string | null;
  readonly timeoutSeconds: number;
  /** null: nf_conntrack_timestamp was 0 when it started. */
  readonly ageSeconds: number | null;
  /** null: nf_conntrack_acct was 0 when it started. */
  readonly counters: { readonly original: Counters; readonly reply: Counters } | null;
  /** Whether the endpoint sees this node instead of the client. */
  readonly masqueraded: boolean;
  readonly mark: number;
  readonly zone: number;
};

export type RowWorld = {
  readonly eligibilityOf: EligibilityOf;
  /** Milliseconds since 1970. */
  readonly now: number;
};

export function rowOf(flow: FlowView, attribution: Attribution, { eligibilityOf, now }: RowWorld): FlowRow {
  const endpoint = joinHostPort(flow.replySource, flow.replySourcePort);
  const destination = joinHostPort(flow.destination, flow.destinationPort);
  return {
    protocol: protocolOf(flow) ?? String(flow.protocol),
    state: flow.state ?? (isReplied(flow) ? "replied" : "unreplied"),
    phase: activityOf(flow),
    client: joinHostPort(flow.source, flow.sourcePort),
    destination,
    endpoint: endpoint === destination ? null : endpoint,
    ...standingOf(flow, attribution, eligibilityOf),
    pod: null,
    timeoutSeconds: flow.timeout,
    // A clock that was set back since makes no flow start in the future.
    ageSeconds: flow.startedAt === null ? null : Math.max(0, Math.round((now - flow.startedAt) / 1000)),
    counters: flow.counters,
    masqueraded: flow.replyDestination !== flow.source,
    mark: flow.mark,
    zone: flow.zone,
  };
}

type Named = Pick<FlowRow, "service" | "destination" | "client">;

/** By Service, destination and client. */
export function compareRows(a: Named, b: Named): number {
  const order = (row: Named) => `${row.service ?? "\uffff"} ${row.destination} ${row.client}`;
  const [first, second] = [order(a), order(b)];
  return first === second ? 0 : first < second ? -1 : 1;
}

type Standing = Pick<FlowRow, "service" | "frontend" | "standing" | "node" | "today" | "because">;

function standingOf(flow: FlowView, attribution: Attribution, eligibilityOf: EligibilityOf): Standing {
  const nothing = { frontend: null, node: null, today: null };
  switch (attribution.kind) {
    case "other":
      return { ...nothing, service: null, standing: "other", because: attribution.because };
    case "deleted":
      return {
        ...nothing,
        service: attribution.service,
        standing: "service-deleted",
        because: attribution.because,
      };
    case "service":
      return serviceStanding(flow, attribution, eligibilityOf);
  }
}

function serviceStanding(flow: FlowView, attribution: ServiceFlow, eligibilityOf: EligibilityOf): Standing {
  const { routed, route, to } = attribution;
  const service = portLabel(routed.port);
  const common = { service, frontend: route.frontend.kind, node: null, today: null };
  switch (to.kind) {
    case "endpoint":
      return {
        ...common,
        standing: "listed",
        node: to.endpoint.nodeName === "" ? null : to.endpoint.nodeName,
        today: eligibilityOf(flow, attribution, to.endpoint),
        because: null,
      };
    case "gone":
      return {
        ...common,
        standing: "gone",
        because: `${joinHostPort(to.address, to.port)} is no longer an endpoint of ${service}`,
      };
    case "relay":
      return {
        ...common,
        standing: "relay",
        because: "a socket of Turnout connects to the endpoint: conntrack does not show which",
      };
    case "untranslated":
      return { ...common, standing: "untranslated", because: `not translated by the rules of ${service}` };
  }
}
