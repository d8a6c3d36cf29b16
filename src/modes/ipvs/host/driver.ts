// The driver of ipvs mode: adds entries, servers and addresses, then writes the rules, then deletes.

import type { TrafficSetting } from "../../../config/resolve/settings.ts";
import { HostError } from "../../../host/error.ts";
import { detectBackEnd } from "../../../host/iptables/back-end.ts";
import { type Start, starter } from "../../../host/iptables/command.ts";
import { openIptablesHost } from "../../../host/iptables/host.ts";
import { type IpvsHost, type LeavingAddresses, openIpvsHost } from "../../../host/ipvs/host.ts";
import type { Family } from "../../../model/address.ts";
import { type Clock, momentOf } from "../../../model/clock.ts";
import type { Problem } from "../../../model/problem.ts";
import type { PortKey } from "../../../model/snapshot.ts";
import { adopt } from "../../../plan/ipvs/adopt.ts";
import { type Change, diff } from "../../../plan/ipvs/diff.ts";
import { type IpvsPlan, linkName, type OwnedOperation } from "../../../plan/ipvs/types.ts";
import type { Routes } from "../../../routing/routes.ts";
import { refusal } from "../../backlog.ts";
import {
  type Applied,
  type Driver,
  type DriverReport,
  emptyReport,
  noProblems,
  type Repair,
  type Verified,
} from "../../driver.ts";
import { TablesDriver, type TablesOptions } from "../../iptables/host/tables.ts";
import { compile, type IpvsOptions } from "../compile.ts";
import { Counting } from "./counting.ts";
import { DrainTracker } from "./drain-tracker.ts";

export type IpvsDriverOptions = IpvsOptions & {
  readonly family: Family;
  readonly clock: Clock;
  /** What is counted. */
  readonly traffic?: TrafficSetting;
  readonly netns?: string;
};

export async function openIpvs(options: IpvsDriverOptions): Promise<Driver> {
  const { family, clock, netns, traffic = "off" } = options;
  const place = netns === undefined ? {} : { netns };
  const start: Start = starter(place);
  const tablesHost = await openIptablesHost(family, await detectBackEnd(start));
  const host = await openIpvsHost({ family, start, ...place });
  const openTables = (compileRules: TablesOptions["compile"]) =>
    new TablesDriver(tablesHost, { place, compile: compileRules });
  return new IpvsDriver(host, openTables, clock, options, traffic);
}

export class IpvsDriver implements Driver {
  readonly #host: IpvsHost;
  readonly #tables: Driver;
  readonly #clock: Clock;
  readonly #options: IpvsOptions;
  readonly #drains: DrainTracker;
  readonly readCounts: Driver["readCounts"];
  /** null: nothing is read. IPVS itself always counts. */
  readonly #counting: Counting | null;
  /** The Plan of the latest Routes. */
  #want: IpvsPlan | null = null;
  /** What the host holds; null: unknown. */
  #applied: IpvsPlan | null = null;
  /** Keys that differ between the two, or may. */
  readonly #pending = new Set<PortKey>();
  /** What the host refused, and why: what it holds of these is not known. */
  readonly #refused = new Map<PortKey, string>();
  /** Syncs and checks of draining servers run one at a time. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    host: IpvsHost,
    openTables: (compileRules: TablesOptions["compile"]) => Driver,
    clock: Clock,
    options: IpvsOptions,
    traffic: TrafficSetting = "off",
  ) {
    this.#host = host;
    this.#clock = clock;
    this.#options = options;
    this.#drains = new DrainTracker(host);
    const counting =
      traffic === "off"
        ? null
        : new Counting(host, { now: () => momentOf(clock), endpoints: traffic === "endpoints" });
    this.#counting = counting;
    if (counting !== null)
      this.readCounts = (signal) => this.#alone(() => counting.read(this.#applied, signal));
    this.#tables = openTables(() => ({ ...this.#want!.tables, changed: new Set(this.#pending) }));
  }

  sync(routes: Routes, signal: AbortSignal, retryRefused = false): Promise<Applied> {
    return this.#alone(() => this.#sync(routes, signal, retryRefused));
  }

  verify(signal: AbortSignal): Promise<Verified> {
    return this.#alone(async () => {
      if (this.#applied === null) return { differences: 0 };
      const change = adopt(await this.#host.read(signal), this.#applied);
      const { rules, operations, bytes, failed } = await this.#reach(change, signal, () =>
        this.#tables.verify(signal),
      );
      const differences = rules.differences + operations - failed;
      return differences === 0
        ? { differences }
        : { differences, repair: sum(rules.repair, operations, bytes) };
    });
  }

  async watch(onForeignChange: (what: string) => void, signal: AbortSignal): Promise<void> {
    await this.#tables.watch(onForeignChange, signal);
    await this.#host.watchAddresses(this.#keeper(onForeignChange), signal);
    this.#drains.follow(this.#clock, (work) => this.#alone(work), signal);
  }

  /** We never remove a wanted address; the kernel reports no changes of servers and sets. */
  #keeper(onForeignChange: (what: string) => void): LeavingAddresses {
    return {
      left: (address) => {
        if (this.#want?.addresses.has(address))
          onForeignChange(`address ${address} was removed from ${linkName}`);
      },
      lost: () => onForeignChange("changes of addresses were missed"),
    };
  }

  unserved(): readonly Problem[] {
    return noProblems;
  }

  report(): DriverReport {
    return emptyReport;
  }

  /** Everything stays: connections continue, and the next process finds the draining real servers. */
  async close(): Promise<void> {
    await this.#turn;
    await this.#tables.close();
    await this.#host.close();
  }

  async #sync(routes: Routes, signal: AbortSignal, retryRefused: boolean): Promise<Applied> {
    const want = compile(this.#want, routes, this.#options);
    this.#want = want;
    for (const key of want.changed) this.#pending.add(key);
    if (retryRefused || [...want.changed].some((key) => this.#refused.has(key))) this.#forget();
    const have = this.#applied;
    const change =
      have === null
        ? adopt(await this.#host.read(signal), want)
        : diff(have, want, this.#pending, this.#drains.all);
    const { rules, operations, bytes } = await this.#reach(change, signal, () =>
      this.#tables.sync({ ...routes, changed: this.#pending }, signal, retryRefused),
    );
    this.#applied = want;
    this.#pending.clear();
    return {
      ...rules,
      readBack: have === null || rules.readBack,
      operations: operations + rules.operations,
      bytes: bytes + rules.bytes,
      refused: [...rules.refused, ...[...this.#refused].map(([key, reason]) => refusal(key, reason))],
    };
  }

  /** After a failure the state of the host is unknown. */
  async #reach<T>(
    { patch, draining }: Change,
    signal: AbortSignal,
    writeRules: () => Promise<T>,
  ): Promise<Written & { readonly rules: T }> {
    try {
      const grown = await this.#apply(patch.grow, signal);
      const rules = await writeRules();
      const shrunk = await this.#apply(patch.shrink, signal);
      const settled = await this.#drains.become(draining, signal);
      return {
        rules,
        operations: grown.operations + shrunk.operations + settled,
        bytes: grown.bytes + shrunk.bytes,
        failed: grown.failed + shrunk.failed,
      };
    } catch (error) {
      this.#forget();
      throw error;
    }
  }

  /** Refusals of single objects are kept for the record; without link and sets nothing works. */
  async #apply(operations: readonly OwnedOperation[], signal: AbortSignal): Promise<Written> {
    if (operations.length === 0) return { operations: 0, bytes: 0, failed: 0 };
    await this.#counting?.leaving(operations, this.#want!, signal);
    const { bytes, failures } = await this.#host.apply(operations, signal);
    this.#counting?.applied(operations);
    for (const { operation: at, reason } of failures) {
      const { kind, owner } = operations[at]!;
      if (kind === "add link" || kind === "create set") {
        throw new HostError("refused", `Cannot ${kind}: ${reason}`);
      }
      if (owner !== null) this.#refused.set(owner, `cannot ${kind}: ${reason}`);
    }
    return { operations: operations.length, bytes, failed: failures.length };
  }

  #forget(): void {
    this.#applied = null;
    this.#refused.clear();
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }
}

function sum(rules: Repair | undefined, operations: number, bytes: number): Repair {
  return {
    ...rules,
    operations: operations + (rules?.operations ?? 0),
    bytes: bytes + (rules?.bytes ?? 0),
  };
}

type Written = { readonly operations: number; readonly bytes: number; readonly failed: number };
