// NodePorts on loopback in nftables mode: listeners of our own, updated to the Routes after every successful Sync.
import { HostError } from "../../../host/error.ts";
import { Balancer } from "../../../host/relay/balancer.ts";
import { type FdBudget, processFdBudget } from "../../../host/relay/fd-budget.ts";
import type { Relay, RelayOptions } from "../../../host/relay/relay.ts";
import { openTcpRelay } from "../../../host/relay/tcp.ts";
import { openUdpRelay } from "../../../host/relay/udp.ts";
import type { Family } from "../../../model/address.ts";
import type { Clock } from "../../../model/clock.ts";
import type { Endpoint, PortKey, Protocol } from "../../../model/snapshot.ts";
import type { PortRoutes, Routes } from "../../../routing/routes.ts";

export type LocalhostReport = {
  readonly listeners: (family: Family, count: number) => void;
  readonly failed: (family: Family, error: HostError) => void;
  readonly outcome: (family: Family, outcome: "forwarded" | "failed") => void;
};

type Wanted = {
  readonly protocol: Exclude<Protocol, "sctp">;
  readonly port: number;
  readonly endpoints: readonly Endpoint[];
  readonly affinitySeconds: number | null;
};

type Open = { readonly relay: Relay; readonly balancer: Balancer; readonly place: string };

const loopback = { ipv4: "127.0.0.1", ipv6: "::1" } as const;
const dialMs = [5_000];
const connectionLimit = 10_000;
const idleMs = 60_000;

/** One family's listeners. Updates run one after another. */
export class LocalhostNodePorts {
  readonly #family: Family;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #report: LocalhostReport;
  readonly #open = new Map<PortKey, Open>();
  readonly #wanted = new Map<PortKey, Wanted>();
  readonly #room: FdBudget = processFdBudget();
  #last: Promise<void> = Promise.resolve();

  constructor(family: Family, clock: Clock, random: () => number, report: LocalhostReport) {
    this.#family = family;
    this.#clock = clock;
    this.#random = random;
    this.#report = report;
  }

  /** Visits the keys that changed, and retries listeners that could not be opened. */
  update(routes: Routes): Promise<void> {
    for (const key of routes.changed) {
      const routed = routes.settings.nftLocalhost === "serve" ? routes.ports.get(key) : undefined;
      const wanted = routed === undefined ? null : wantedOf(routed);
      if (wanted === null) this.#wanted.delete(key);
      else this.#wanted.set(key, wanted);
    }
    const due = new Set([
      ...routes.changed,
      ...[...this.#wanted.keys()].filter((key) => !this.#open.has(key)),
    ]);
    this.#last = this.#last.then(() => this.#reconcile(due));
    return this.#last;
  }

  /** Open TCP connections and UDP clients. */
  get connections(): number {
    let sum = 0;
    for (const { relay } of this.#open.values()) sum += relay.open();
    return sum;
  }

  close(): Promise<void> {
    this.#wanted.clear();
    this.#last = this.#last.then(() => this.#reconcile(new Set(this.#open.keys())));
    return this.#last;
  }

  /** Ports are given back before they are taken: a NodePort may have moved from one Service to another. */
  async #reconcile(keys: ReadonlySet<PortKey>): Promise<void> {
    for (const key of keys) {
      const wanted = this.#wanted.get(key);
      const open = this.#open.get(key);
      if (open === undefined || open.place === placeOf(wanted)) continue;
      this.#open.delete(key);
      await open.relay.close(true);
    }
    for (const key of keys) {
      const wanted = this.#wanted.get(key);
      if (wanted === undefined) continue;
      const open = this.#open.get(key) ?? (await this.#listen(key, wanted));
      open?.balancer.set(wanted.endpoints, wanted.affinitySeconds);
    }
    this.#report.listeners(this.#family, this.#open.size);
  }

  async #listen(key: PortKey, wanted: Wanted): Promise<Open | null> {
    const balancer = new Balancer({ order: "random", random: this.#random, now: () => this.#clock.steady() });
    // All clients are this node itself: they share one pin.
    const options: RelayOptions = {
      host: loopback[this.#family],
      port: wanted.port,
      choose: () => balancer.choose("localhost"),
      limit: connectionLimit,
      room: this.#room,
      onOutcome: (outcome) => this.#report.outcome(this.#family, outcome),
    };
    try {
      const relay =
        wanted.protocol === "tcp"
          ? await openTcpRelay({ ...options, dialMs })
          : await openUdpRelay({ ...options, idleMs });
      const open = { relay, balancer, place: placeOf(wanted) };
      this.#open.set(key, open);
      return open;
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      this.#report.failed(this.#family, error);
      return null;
    }
  }
}

function placeOf(wanted: Wanted | undefined): string {
  return wanted === undefined ? "" : `${wanted.protocol}/${wanted.port}`;
}

/** The NodePort it holds, if an endpoint can answer; policy Local means the endpoints of this node. */
function wantedOf({ port, pools, routes }: PortRoutes): Wanted | null {
  if (port.protocol === "sctp" || !routes.some(({ frontend }) => frontend.kind === "nodePort")) return null;
  const { endpoints } = port.externalPolicy === "local" ? pools.local : pools.cluster;
  if (endpoints.length === 0) return null;
  return {
    protocol: port.protocol,
    port: port.nodePort,
    endpoints,
    affinitySeconds: port.affinity?.seconds ?? null,
  };
}
