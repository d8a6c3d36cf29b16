// The driver of userspace mode: opens relays, then writes the rules that lead to them; deletes rules before closing relays.
import type { TrafficSetting } from "../../../config/resolve/settings.ts";
import { HostError } from "../../../host/error.ts";
import { detectBackEnd } from "../../../host/iptables/back-end.ts";
import { starter } from "../../../host/iptables/command.ts";
import { type IptablesHost, openIptablesHost } from "../../../host/iptables/host.ts";
import { type Cleaning, cleanFlows, type FlowQuery } from "../../../host/netlink/conntrack.ts";
import { processFdBudget } from "../../../host/relay/fd-budget.ts";
import { type Range, RelayPorts } from "../../../host/relay/ports.ts";
import type { Address, Family } from "../../../model/address.ts";
import type { Clock } from "../../../model/clock.ts";
import type { Problem } from "../../../model/problem.ts";
import type { PortKey } from "../../../model/snapshot.ts";
import { GoneFrontends, usesGoneFrontend } from "../../../routing/gone-frontends.ts";
import { holderOf, type PortRoutes, type Routes } from "../../../routing/routes.ts";
import { type Applied, type Driver, type DriverReport, emptyReport, type Verified } from "../../driver.ts";
import { TablesDriver } from "../../iptables/host/tables.ts";
import { compile } from "../compile.ts";
import { unserved } from "../relays.ts";
import { type RelayChange, Relays } from "./relays.ts";

export type UserspaceOptions = {
  readonly family: Family;
  readonly clock: Clock;
  /** The address relays listen on; null: every address. */
  readonly bind: Address | null;
  /** null: the kernel chooses ports. */
  readonly portRange: Range | null;
  readonly udpIdleMs: number;
  /** What is counted. */
  readonly traffic: TrafficSetting;
};

export async function openUserspace(options: UserspaceOptions): Promise<Driver> {
  const { family, bind, udpIdleMs, clock } = options;
  const host = await openIptablesHost(family, await detectBackEnd(starter()));
  const random = Math.random;
  const ports = new RelayPorts(options.portRange, random);
  const now = () => clock.steady();
  const relays = new Relays({ family, bind, ports, room: processFdBudget(), udpIdleMs, random, now });
  return new UserspaceDriver(host, relays, bind, (query) => cleanFlows(query), options.traffic);
}

type CleanFlows = (query: FlowQuery) => Promise<Pick<Cleaning, "complete">>;

const udp = 17;

export class UserspaceDriver implements Driver {
  readonly #relays: Relays;
  readonly #tables: TablesDriver;
  readonly #family: Family;
  readonly #clean: CleanFlows;
  /** Keys that are not fully applied, besides the changed keys of the next Routes. */
  readonly #pending = new Set<PortKey>();
  /** Ports of UDP relays that flows may still lead to. */
  readonly #gone = new Set<number>();
  readonly #goneFrontends = new GoneFrontends();
  /** Whether a tracked flow may lead past the relay that is there now: always so after a start. */
  #mustCheckFlows = true;

  readonly readCounts: Driver["readCounts"];

  constructor(
    host: IptablesHost,
    relays: Relays,
    bind: Address | null,
    clean: CleanFlows,
    traffic: TrafficSetting = "off",
  ) {
    this.#relays = relays;
    if (traffic !== "off")
      this.readCounts = async () => ({ ports: relays.counts(traffic === "endpoints"), gaps: [] });
    this.#tables = new TablesDriver(host, {
      place: {},
      compile: (before, routes) => compile(before, routes, { bind, socketsOf: relays.socketsOf }),
    });
    this.#family = host.family;
    this.#clean = clean;
  }

  async sync(routes: Routes, signal: AbortSignal, retryRefused = false): Promise<Applied> {
    for (const key of routes.changed) this.#pending.add(key);
    this.#goneFrontends.note(routes, routes.changed);
    const first = await this.#pass(routes, signal, retryRefused);
    this.#pending.clear();
    // Ports released in this Sync may be free for relays that failed to open.
    const again = first.closed > 0 && this.#relays.unfinished.length > 0;
    const applied = again
      ? sum(first.applied, (await this.#pass(routes, signal, false)).applied)
      : first.applied;
    await this.#forgetFlows(routes);
    return { ...applied, refused: [...applied.refused, ...this.#relays.problems()] };
  }

  /** The next Sync reopens relays whose sockets another process made the kernel abort. */
  async verify(signal: AbortSignal): Promise<Verified> {
    const { keys, closed } = await this.#relays.closeLostRelays();
    for (const key of keys) this.#pending.add(key);
    this.#note(closed);
    const verified = await this.#tables.verify(signal);
    return { ...verified, differences: verified.differences + keys.size };
  }

  watch(onForeignChange: (what: string) => void, signal: AbortSignal): Promise<void> {
    return this.#tables.watch(onForeignChange, signal);
  }

  unserved(routed: PortRoutes): readonly Problem[] {
    return unserved(routed);
  }

  report(): DriverReport {
    return { ...emptyReport, relays: () => this.#relays.state() };
  }

  /** Rules stay, as in kube-proxy, and lead to closed ports: clients are refused immediately. */
  close(): Promise<void> {
    return this.#relays.close();
  }

  async #pass(
    routes: Routes,
    signal: AbortSignal,
    retryRefused: boolean,
  ): Promise<{ readonly applied: Applied; readonly closed: number }> {
    const keys = new Set([...this.#pending, ...this.#relays.unfinished]);
    const opened = await this.#relays.grow(routes, keys);
    const applied = await this.#tables.sync({ ...routes, changed: keys }, signal, retryRefused);
    const closed = await this.#relays.shrink(routes, keys);
    this.#note(closed);
    if (opened.some(isUdp)) this.#mustCheckFlows = true;
    return { applied, closed: closed.length };
  }

  #note(closed: readonly RelayChange[]): void {
    for (const { port } of closed.filter(isUdp)) {
      this.#gone.add(port);
      this.#mustCheckFlows = true;
    }
  }

  /** A conntrack entry keeps sending a UDP flow to the relay port of its first datagram, even after that port closed. */
  async #forgetFlows(routes: Routes): Promise<void> {
    if (!this.#mustCheckFlows && this.#goneFrontends.all.size === 0) return;
    const gone = new Set(this.#gone);
    const left = new Set(this.#goneFrontends.all);
    try {
      const { complete } = await this.#clean({
        family: this.#family,
        protocol: udp,
        select: (flow) =>
          gone.has(flow.replySourcePort) ||
          this.#leadsToWrongRelay(flow, routes) ||
          usesGoneFrontend(flow, left, routes),
      });
      if (!complete) return;
      this.#mustCheckFlows = false;
      this.#goneFrontends.forget(left);
      for (const port of gone) this.#gone.delete(port);
    } catch (error) {
      // Retried after the next Sync.
      if (!(error instanceof HostError)) throw error;
    }
  }

  #leadsToWrongRelay(flow: Parameters<FlowQuery["select"]>[0], routes: Routes): boolean {
    const { destination, destinationPort: port, replySourcePort } = flow;
    const holder = holderOf(routes, `${destination}/udp/${port}`) ?? holderOf(routes, `node/udp/${port}`);
    if (holder === undefined) return false;
    return ![...this.#relays.socketsOf(holder).relayPorts.values()].includes(replySourcePort);
  }
}

function isUdp({ protocol }: RelayChange): boolean {
  return protocol === "udp";
}

function sum(a: Applied, b: Applied): Applied {
  return {
    ...b,
    readBack: a.readBack || b.readBack,
    operations: a.operations + b.operations,
    bytes: a.bytes + b.bytes,
  };
}
