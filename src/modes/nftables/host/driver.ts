// The driver of nftables mode: compiles the Plan, applies the difference, and reads the kernel when its state is unknown.
import { HostError } from "../../../host/error.ts";
import {
  NftablesHost,
  type NftablesHostOptions,
  PatchRefused,
  type TableHost,
  type Written,
} from "../../../host/nftables/host.ts";
import { type Clock, type Moment, momentOf } from "../../../model/clock.ts";
import type { Problem } from "../../../model/problem.ts";
import type { PortKey } from "../../../model/snapshot.ts";
import { nextTurn } from "../../../model/steps.ts";
import { after, type Batch, batches, batchSize } from "../../../plan/nftables/batches.ts";
import { countOperations, diff, type Operation } from "../../../plan/nftables/diff.ts";
import { Growth } from "../../../plan/nftables/growth.ts";
import {
  emptyPlan,
  settled,
  settledAll,
  unfold,
  unfoldChanged,
  withFragments,
} from "../../../plan/nftables/plan.ts";
import { takeOver } from "../../../plan/nftables/takeover.ts";
import type { NftPlan, NftTable } from "../../../plan/nftables/types.ts";
import type { Routes } from "../../../routing/routes.ts";
import { Backlog } from "../../backlog.ts";
import {
  type Applied,
  type Driver,
  type DriverReport,
  emptyReport,
  noProblems,
  type Verified,
} from "../../driver.ts";
import { compile } from "../compile.ts";
import { longSourceLists, sourceCheck } from "../sources.ts";
import { Counting } from "./counting.ts";
import { DeferredDeletes } from "./deferred-deletes.ts";
import { refusedKeysOf } from "./refusals.ts";
import { isSmall, restoredFirst } from "./restore-order.ts";
import { TableWatch } from "./table-watch.ts";

/** `counts`: the rules count traffic, and `clock` is used for the times of what is lost. */
export type NftablesOptions = NftablesHostOptions & { readonly counts?: boolean; readonly clock?: Clock };

export async function openNftables({ counts, clock, ...options }: NftablesOptions): Promise<NftablesDriver> {
  const host = await NftablesHost.open(options);
  return new NftablesDriver(host, systemAfter, counts && clock !== undefined ? () => momentOf(clock) : null);
}

export class NftablesDriver implements Driver {
  /** Whether the table belongs to this process alone. */
  readonly #owned: boolean;
  readonly #host: TableHost;
  readonly #watch: TableWatch;
  readonly #deferredDeletes: DeferredDeletes;
  /** The Plan of the latest Routes; the same as `#applied` once all of it is applied. */
  #want: NftPlan | null = null;
  /** The Plan that the changes since the last complete Sync start from. */
  #previous: NftPlan | null = null;
  /** What the host holds; null: unknown. */
  #applied: NftPlan | null = null;
  readonly #backlog = new Backlog();
  /** The Routes that `#want` was compiled from. */
  #compiled: Pick<Routes, "ports" | "settings" | "serviceCIDRs"> | null = null;
  /** What the slices of a first load have written; null: no first load is under way. */
  #loaded: Written | null = null;
  #closing: Promise<void> | null = null;
  readonly readCounts: Driver["readCounts"];
  /** null: the rules do not count. */
  readonly #counting: Counting | null;

  /** `now`: traffic is counted, and this is the time. */
  constructor(host: TableHost, after: Clock["after"] = systemAfter, now: (() => Moment) | null = null) {
    this.#owned = host.owned;
    this.#host = host;
    const counting = now === null ? null : new Counting(host, now);
    this.#counting = counting;
    if (counting !== null) this.readCounts = (signal) => counting.read(this.#applied, signal);
    this.#watch = new TableWatch(host);
    this.#deferredDeletes = new DeferredDeletes(host, after);
  }

  report(): DriverReport {
    return { ...emptyReport, tableOwned: this.#owned, cleanupFailures: this.#deferredDeletes.failures };
  }

  unserved(): readonly Problem[] {
    return noProblems;
  }

  async sync(
    routes: Routes,
    signal: AbortSignal,
    retryRefused = false,
    isSuperseded: () => boolean = () => false,
  ): Promise<Applied> {
    await this.#compile(routes);
    this.#backlog.add([], retryRefused);
    if (this.#applied === null) await this.#watch.pause();
    const loaded = this.#loaded;
    this.#loaded = null;
    const applied = await this.#reach(signal, isSuperseded);
    await this.#watch.resume();
    if (loaded === null) return applied;
    const operations = loaded.operations + applied.operations;
    return { ...applied, readBack: true, operations, bytes: loaded.bytes + applied.bytes };
  }

  /** A first load begins with the first slice if there is no table; one that exists is compared as a whole. */
  async prepare(routes: Routes, signal: AbortSignal): Promise<void> {
    const isFirst = this.#want === null;
    await this.#compile(routes);
    try {
      if (isFirst && !(await this.#host.exists(signal))) {
        await this.#watch.pause();
        this.#loaded = nothing;
      }
      if (this.#loaded === null || !this.#isWorthATransaction()) return;
      const { operations, bytes } = await this.#reach(signal, () => false);
      this.#loaded = {
        operations: this.#loaded.operations + operations,
        bytes: this.#loaded.bytes + bytes,
      };
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      this.#loaded = null;
    }
  }

  async verify(signal: AbortSignal): Promise<Verified> {
    const before = this.#applied;
    if (before === null) return { differences: 0 };
    const unfolded = lazily(() => unfold(before));
    const found = await this.#host.find(unfolded, signal);
    if (found === null) return this.#restore(before, signal);
    const { patch, from } = takeOver(found, unfolded(), this.#owned);
    if (patch.length === 0) return { differences: 0 };
    const repair = await this.#apply(patch, signal);
    this.#hold(settledAll(before, unfolded(), from), before.fragments.keys());
    if (this.#want === before) this.#want = this.#applied;
    await this.#watch.resume();
    return { differences: countOperations(patch), repair };
  }

  /** The table is gone, as after `nft flush ruleset`: the hooks and the ServicePorts in use are written first. */
  async #restore(plan: NftPlan, signal: AbortSignal): Promise<Verified> {
    this.#applied = null;
    const keys = [...plan.fragments.keys()];
    const first = isSmall(plan)
      ? new Set(keys)
      : restoredFirst(plan, await this.#host.destinationsInUse(signal));
    let { operations, bytes } = await this.#advance(plan, first, signal);
    if (first.size < keys.length) {
      const rest = keys.filter((key) => !first.has(key));
      const written = await this.#advance(plan, rest, signal);
      operations += written.operations;
      bytes += written.bytes;
    }
    this.#hold(plan, keys);
    await this.#watch.resume();
    return { differences: operations, repair: { operations, bytes } };
  }

  /** Starts after the first Sync. */
  async watch(onForeignChange: (what: string) => void, signal: AbortSignal): Promise<void> {
    this.#watch.want(onForeignChange, signal);
    if (this.#applied !== null) await this.#watch.resume();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#deferredDeletes.stop();
    try {
      if (this.#owned && this.#want !== null)
        await this.#handBack(this.#applied ?? without(this.#want, this.#backlog.refused));
    } finally {
      await this.#host.close();
    }
  }

  /** Replaces the owned table by a plain one in one transaction, because no other program could delete an owned one. */
  async #handBack(plan: NftPlan): Promise<void> {
    const table = unfold(plan);
    const found = await this.#host.find(() => table);
    if (found?.ownership !== "ours") return;
    await this.#host.apply(takeOver(found, table, false).patch, undefined, "plain");
  }

  /** The kernel checks all verdicts of a table with every transaction: the larger the table, the more is written at a time. */
  #isWorthATransaction(): boolean {
    return this.#backlog.pending * 16 >= (this.#applied?.fragments.size ?? 0);
  }

  /** The Plan of these Routes; it was made already if all slices of them were prepared. */
  async #compile(routes: Routes): Promise<void> {
    const { ports, settings, serviceCIDRs } = routes;
    const known = this.#compiled;
    if (known?.ports === ports && known.settings === settings && known.serviceCIDRs === serviceCIDRs) return;
    await prepared(routes);
    if (this.#want === this.#applied) this.#previous = this.#want;
    this.#want = compile(this.#want, routes);
    this.#compiled = { ports, settings, serviceCIDRs };
    this.#backlog.add(this.#want.changed, false);
  }

  async #reach(signal: AbortSignal, isSuperseded: () => boolean): Promise<Applied> {
    const applied = await this.#backlog.reach(this.#want!, {
      isKnown: () => this.#applied !== null,
      without,
      attempt: (want, keys) => this.#attempt(want, keys, signal, isSuperseded),
      refusedKeys: (error, want) => (error instanceof PatchRefused ? refusedKeysOf(error.parts, want) : null),
    });
    if (applied.refused.length === 0 && applied.unfinished !== true) this.#want = this.#applied;
    return applied;
  }

  async #attempt(
    want: NftPlan,
    keys: readonly PortKey[],
    signal: AbortSignal,
    isSuperseded: () => boolean,
  ): Promise<Omit<Applied, "refused"> & { readonly left?: readonly PortKey[] }> {
    if (this.#applied !== null)
      return { readBack: false, ...(await this.#advance(want, keys, signal, isSuperseded)) };
    const unfolded = lazily(() => unfold(want));
    const found = await this.#host.find(unfolded, signal);
    if (found === null)
      return { readBack: true, ...(await this.#advance(want, want.fragments.keys(), signal)) };
    await nextTurn();
    const { patch, from } = takeOver(found, unfolded(), this.#owned);
    await nextTurn();
    const written = await this.#apply(patch, signal);
    this.#hold(settledAll(want, unfolded(), from), want.fragments.keys());
    return { readBack: true, ...written };
  }

  /** From the known state of the host, in several transactions if needed, until done or a newer Snapshot exists. */
  async #advance(
    want: NftPlan,
    keys: Iterable<PortKey>,
    signal: AbortSignal,
    isSuperseded: () => boolean = () => false,
  ): Promise<Written & { readonly left: readonly PortKey[] }> {
    let [operations, bytes, size] = [0, 0, 0];
    const parts = batches(this.#applied, want, keys);
    if (parts.length > 1) await this.#watch.pause();
    if (parts.every(({ grows }) => grows)) return this.#grow(want, parts, signal, isSuperseded);
    const isOneStep = parts.length === 1 && this.#leadsTo(want, this.#applied, parts[0]!.keys);
    for (const [i, part] of parts.entries()) {
      const plan = isOneStep ? want : after(this.#applied, want, part);
      const written = await this.#step(plan, part, signal);
      operations += written.operations;
      bytes += written.bytes;
      size += part.size;
      // Called after every transaction, because the call is what creates a newer Snapshot. Stops after a full batch only.
      if (isSuperseded() && size >= batchSize && i < parts.length - 1) {
        const left = new Set(parts.slice(i + 1).flatMap((rest) => rest.keys));
        return { operations, bytes, left: [...left] };
      }
    }
    return { operations, bytes, left: [] };
  }

  /** Each batch is encoded while the kernel processes the one before. */
  async #grow(
    want: NftPlan,
    parts: readonly Batch[],
    signal: AbortSignal,
    isSuperseded: () => boolean,
  ): Promise<Written & { readonly left: readonly PortKey[] }> {
    const before = this.#applied;
    const growth = new Growth(before, want);
    let sum: Written = { operations: 0, bytes: 0 };
    let [size, count] = [0, 0];
    let sent: Promise<Written> = Promise.resolve(sum);
    const finished = async () => {
      const { operations, bytes } = await sent;
      sum = { operations: sum.operations + operations, bytes: sum.bytes + bytes };
    };
    for (const { keys, size: added } of parts) {
      const next = this.#apply(growth.patch(keys), signal);
      try {
        await finished();
      } catch (error) {
        // It may still reach the kernel: what that holds is unknown until it has.
        await next.catch(() => {});
        this.#applied = null;
        throw error;
      }
      sent = next;
      size += added;
      count++;
      if (size >= batchSize && count < parts.length && isSuperseded()) break;
    }
    await finished();
    const done = parts.slice(0, count).flatMap((part) => part.keys);
    const left = parts.slice(count).flatMap((part) => part.keys);
    const isWhole = left.length === 0 && this.#leadsTo(want, before, done);
    this.#hold(isWhole ? want : withFragmentsOf(before, want, done), done);
    return { ...sum, left };
  }

  /** Whether a host that has `before` has exactly `want` once all keys that are due are as wanted: then no Plan has to be made. */
  #leadsTo(want: NftPlan, before: NftPlan | null, keys: readonly PortKey[]): boolean {
    if (want !== this.#want) return false;
    return before === null ? keys.length === want.fragments.size : before === this.#previous;
  }

  async #step(plan: NftPlan, part: Batch, signal: AbortSignal): Promise<Written> {
    const before = this.#applied;
    const tables: { have: NftTable | null; want: NftTable } =
      before === null ? { have: null, want: unfold(plan) } : unfoldChanged(before, plan, part.keys);
    const patch = diff(tables.have, tables.want);
    if (part.size > longWork) await nextTurn();
    const written = await this.#apply(patch, signal);
    this.#hold(settled(plan, part.keys, tables.have), part.keys);
    return written;
  }

  /** The host now has this Plan, which differs from the one before in these ServicePorts at most. */
  #hold(plan: NftPlan, keys: Iterable<PortKey>): void {
    this.#applied = plan;
    this.#counting?.holds(plan, keys);
  }

  /** A refused Patch changed nothing, but means that the host differs from the expected state. */
  async #apply(patch: readonly Operation[], signal: AbortSignal): Promise<Written> {
    try {
      const { removed, ...written } = await this.#deferredDeletes.apply(patch, signal);
      this.#counting?.applied(patch, removed);
      return written;
    } catch (error) {
      this.#applied = null;
      throw error;
    }
  }
}

const nothing: Written = { operations: 0, bytes: 0 };

/** From this many elements, yield to other work of the process. */
const longWork = 4096;

/** Source ranges are sorted once per Service; yields after each long list. */
async function prepared(routes: Routes): Promise<void> {
  for (const allowed of longSourceLists(routes, longWork)) {
    sourceCheck(allowed, routes.settings);
    await nextTurn();
  }
}

/** Made at its first use. */
function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

function without(plan: NftPlan, keys: Iterable<PortKey>): NftPlan {
  return withFragments(
    plan,
    plan.foundation,
    [...keys].map((key) => [key, undefined] as const),
  );
}

/** The Plan of a host that had `before` and was given these ServicePorts as wanted. */
function withFragmentsOf(before: NftPlan | null, want: NftPlan, keys: readonly PortKey[]): NftPlan {
  const changes = keys.map((key) => [key, want.fragments.get(key)] as const);
  return withFragments(before ?? emptyPlan(want.foundation), want.foundation, changes);
}

function systemAfter(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms).unref();
  return () => clearTimeout(timer);
}
