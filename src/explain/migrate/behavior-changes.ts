// What else changes with the mode: how endpoints are chosen and clients remembered, and what firewalls then see.
import type { ValidConfig } from "../../config/config.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import type { Mode } from "../../modes/mode.ts";
import type { Behavior } from "../../routing/behavior.ts";
import { isExternallyReachable } from "../../routing/pools.ts";

/** Behavior that does not show in the outcome of a single packet. */
type Habit =
  | "choice"
  | "affinity"
  | "clientsRemembered"
  | "invalidPackets"
  | "pastForwardPolicy"
  | "healthCheckPortsAccepted"
  | "holdsAddresses"
  | "connectionsOutlive";

export type BehaviorChange = {
  readonly habit: Habit;
  readonly before: string;
  readonly after: string;
  readonly advice: string | null;
  /** null: the node as a whole. */
  readonly services: readonly string[] | null;
};

/** Only what concerns a Service that is there, or the node itself. */
export function behaviorChanges(
  { behavior: from }: Mode,
  { behavior: to }: Mode,
  config: ValidConfig,
  ports: readonly ServicePort[],
): BehaviorChange[] {
  return (Object.keys(descriptions) as Habit[]).flatMap((habit) => {
    const { concerns, describe, advice } = descriptions[habit] as Description<Habit>;
    const [before, after] = [describe(from[habit], config), describe(to[habit], config)];
    if (before === after) return [];
    const services = concerns === null ? null : namesOf(ports.filter(concerns));
    if (services?.length === 0) return [];
    return [{ habit, before, after, advice: advice?.(from, to, config) ?? null, services }];
  });
}

type Description<H extends Habit> = {
  /** Which Services it is about; null: the node as a whole. */
  readonly concerns: ((port: ServicePort) => boolean) | null;
  readonly describe: (value: Behavior[H], config: ValidConfig) => string;
  readonly advice?: (from: Behavior, to: Behavior, config: ValidConfig) => string | null;
};

const isSticky = ({ affinity }: ServicePort) => affinity !== null;

const descriptions: { readonly [H in Habit]: Description<H> } = {
  choice: {
    concerns: ({ endpoints }) => endpoints.length > 1,
    describe: (choice, { ipvs }) =>
      choice === "scheduler"
        ? `the scheduler ${ipvs.scheduler || "rr"} of IPVS chooses endpoints`
        : choice === "turn"
          ? "endpoints are taken in turn"
          : "endpoints are chosen at random, all equally likely",
    advice: (from, _, { ipvs }) =>
      from.choice === "scheduler" ? schedulerAdvice(ipvs.scheduler || "rr") : null,
  },
  affinity: {
    concerns: (port) => isSticky(port) && isExternallyReachable(port),
    describe: (scope) =>
      scope === "shared"
        ? "a sticky client has one endpoint, wherever it comes in"
        : "a sticky client has an endpoint of its own at each address and port",
    advice: () => "sticky clients are assigned again once, when the mode changes",
  },
  clientsRemembered: {
    concerns: isSticky,
    describe: (most) =>
      `${most === null ? "any number of" : `up to ${most.toLocaleString("en")}`} clients of each sticky endpoint are remembered`,
  },
  invalidPackets: {
    concerns: null,
    describe: (treatment) =>
      treatment === "drop"
        ? "forwarded packets that connection tracking calls INVALID are dropped"
        : "packets that connection tracking calls INVALID pass",
    advice: (_, to) =>
      to.invalidPackets === "drop"
        ? "where routes are asymmetric, set conntrack.tcpBeLiberal"
        : "if pods reset connections that were slow, set conntrack.tcpBeLiberal",
  },
  pastForwardPolicy: {
    concerns: null,
    describe: (flows) =>
      ({
        none: "a firewall that drops what is forwarded drops traffic of Services too",
        masqueraded:
          "masqueraded traffic of Services is accepted past a firewall that drops what is forwarded",
        all: "traffic of Services passes a firewall that drops what is forwarded",
      })[flows],
    advice: (from, to) =>
      openness[to.pastForwardPolicy] < openness[from.pastForwardPolicy]
        ? "check `iptables -S FORWARD` and `nft list ruleset`: where a policy or rule drops, accept the networks of pods and Services"
        : null,
  },
  healthCheckPortsAccepted: {
    concerns: ({ healthCheckNodePort }) => healthCheckNodePort !== 0,
    describe: (isAccepted) =>
      isAccepted
        ? "health-check ports are opened in a firewall that drops what comes in"
        : "health-check ports answer only where a firewall lets them",
    advice: (from) =>
      from.healthCheckPortsAccepted ? "let the health checks of load balancers in yourself" : null,
  },
  holdsAddresses: {
    concerns: null,
    describe: (holds) =>
      holds
        ? "addresses of Services are addresses of the node, on the interface kube-ipvs0"
        : "addresses of Services are on no interface",
    advice: (from) =>
      from.holdsAddresses
        ? "whatever binds to or announces these addresses on the node needs them elsewhere; strictARP is no longer needed"
        : "with MetalLB or others that answer ARP, set ipvs.strictARP",
  },
  connectionsOutlive: {
    concerns: null,
    describe: (outlive) =>
      outlive
        ? "connections live on when the proxy ends"
        : "connections go through the process, and end with it",
    advice: (from) =>
      from.connectionsOutlive
        ? null
        : "connections of the old process end with the switch: drain the node first",
  },
};

const openness = { none: 0, masqueraded: 1, all: 2 } as const satisfies Record<
  Behavior["pastForwardPolicy"],
  number
>;

/** Schedulers that choose by criteria which no other mode has. */
function schedulerAdvice(scheduler: string): string {
  if (["sh", "mh", "dh", "lblc", "lblcr"].includes(scheduler))
    return `${scheduler} keeps clients together by hash: use sessionAffinity: ClientIP where that mattered`;
  if (["lc", "wlc", "sed", "nq", "fo", "ovf", "wrr", "twos"].includes(scheduler))
    return `${scheduler} considered connections or weights; no other mode does, so watch the load of slow endpoints`;
  return "shares are equal as before, but not in a fixed order";
}

function namesOf(ports: readonly ServicePort[]): string[] {
  return [...new Set(ports.map(({ service }) => service))].sort();
}
