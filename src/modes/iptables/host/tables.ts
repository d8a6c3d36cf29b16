// The driver of packet-filter tables, shared by three modes: applies the difference between Plans with one restore.

import type { CanaryOptions } from "../../../host/iptables/canary.ts";
import type { Place } from "../../../host/iptables/command.ts";
import { ForeignChanges } from "../../../host/iptables/events.ts";
import type { IptablesHost } from "../../../host/iptables/host.ts";
import { RestoreFailed } from "../../../host/iptables/refusal.ts";
import type { Problem } from "../../../model/problem.ts";
import type { PortKey } from "../../../model/snapshot.ts";
import { adopt } from "../../../plan/iptables/adopt.ts";
import { countOperations, diff } from "../../../plan/iptables/diff.ts";
import { ruleCount, withFragments } from "../../../plan/iptables/plan.ts";
import type { IptablesPatch, IptablesPlan, PlacedRule, Step } from "../../../plan/iptables/types.ts";
import type { Routes } from "../../../routing/routes.ts";
import { Backlog } from "../../backlog.ts";
import {
  type Applied,
  type Driver,
  type DriverReport,
  emptyReport,
  noProblems,
  type RuleCount,
  type Verified,
} from "../../driver.ts";

export type TablesOptions = {
  readonly place: Place;
  /** The mode's Plan; `before` is its Plan of the Routes before, null to compile everything. */
  readonly compile: (before: IptablesPlan | null, routes: Routes) => IptablesPlan;
  /** What the host lacks; see `DriverReport`. */
  readonly lacks?: () => readonly Problem[];
  /** Whether what was refused is a part of the rules that `simplify` leaves out. */
  readonly isDispensable?: (error: RestoreFailed) => boolean;
  /** Whether rules that are compiled from now on are simpler, and may be accepted where these were refused; null: no. */
  readonly simplify?: (error: RestoreFailed) => Simplified | null;
  /** Detects a flush by a missing canary chain, if the mode has one. */
  readonly watchCanary?: (
    applied: Pick<CanaryOptions, "isSet" | "guards">,
    onGone: (what: string) => void,
    signal: AbortSignal,
  ) => void;
};

/** What was refused is known to be left out now, or this is a guess that is undone when it does not help. */
export type Simplified = { readonly kind: "certain" } | { readonly kind: "guess"; readonly undo: () => void };

export class TablesDriver implements Driver {
  readonly #host: IptablesHost;
  readonly #options: TablesOptions;
  /** The Plan of the latest Routes. */
  #want: IptablesPlan | null = null;
  /** What the host holds; null: unknown. */
  #applied: IptablesPlan | null = null;
  /** Of the last attempt. */
  #rules: readonly RuleCount[] = [];
  readonly #backlog = new Backlog();
  /** null: not watched, or the back end reports no changes. */
  #foreign: ForeignChanges | null = null;

  constructor(host: IptablesHost, options: TablesOptions) {
    this.#host = host;
    this.#options = options;
  }

  report(): DriverReport {
    return { ...emptyReport, rules: this.#rules, lacks: this.#options.lacks?.() ?? noProblems };
  }

  unserved(): readonly Problem[] {
    return noProblems;
  }

  async sync(routes: Routes, signal: AbortSignal, retryRefused = false): Promise<Applied> {
    try {
      return await this.#reach(routes, signal, retryRefused);
    } catch (error) {
      const simplified = isRefused(error) ? (this.#options.simplify?.(error) ?? null) : null;
      if (simplified === null) throw error;
      return await this.#reachSimplified(simplified, error, routes, signal, retryRefused);
    }
  }

  async #reachSimplified(
    simplified: Simplified,
    error: unknown,
    ...order: Parameters<Driver["sync"]>
  ): Promise<Applied> {
    try {
      const applied = await this.#reach(...order);
      return { ...applied, retries: (applied.retries ?? 0) + 1 };
    } catch (second) {
      if (simplified.kind === "certain" || !(second instanceof RestoreFailed)) throw second;
      simplified.undo();
      throw error;
    }
  }

  async #reach(...[routes, signal, retryRefused = false]: Parameters<Driver["sync"]>): Promise<Applied> {
    // Where everything is written again, comments follow the size that the cluster has now.
    this.#want = this.#options.compile(this.#applied === null ? null : this.#want, routes);
    this.#backlog.add(this.#want.changed, retryRefused);
    return this.#backlog.reach(this.#want, {
      isKnown: () => this.#applied !== null,
      without,
      attempt: (want, keys) => this.#attempt(want, keys, signal),
      refusedKeys: (error) => (this.#isSimplifiable(error) ? null : refusedKeysOf(error)),
    });
  }

  async verify(signal: AbortSignal): Promise<Verified> {
    if (this.#applied === null) return { differences: 0 };
    const plan = this.#applied;
    const patch = adopt(await this.#host.read(signal), plan);
    const written = await this.#apply(patch, signal);
    const differences = countOperations(patch);
    if (differences === 0) return { differences };
    return { differences, repair: { ...written, rules: rulesOf(plan, patch) } };
  }

  watch(onForeignChange: (what: string) => void, signal: AbortSignal): Promise<void> {
    const applied = { isSet: () => this.#applied !== null, guards: () => this.#guards() };
    this.#options.watchCanary?.(applied, onForeignChange, signal);
    // Reported even while the state of the host is unknown: it may have been read already.
    if (this.#host.backEnd === "nf_tables") {
      const host = this.#host;
      const watched = {
        family: host.family,
        isOwn: (pid: number) => host.isOwn(pid),
        guardsLoopback: () => this.#guards().length > 0,
      };
      this.#foreign = new ForeignChanges(watched, onForeignChange, signal, this.#options.place);
    }
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** A rule that every Service may do without must not cost the Service that has it first. */
  #isSimplifiable(error: unknown): boolean {
    return isRefused(error) && this.#options.isDispensable?.(error) === true;
  }

  /** Rules without which neighbours reach loopback addresses; none unless we open those to packets from outside. */
  #guards(): readonly PlacedRule[] {
    return (this.#applied ?? this.#want)?.foundation.guards ?? [];
  }

  async #attempt(
    want: IptablesPlan,
    keys: readonly PortKey[],
    signal: AbortSignal,
  ): Promise<Omit<Applied, "refused">> {
    const before = this.#applied;
    await this.#foreign?.expectLoad();
    const patch = before === null ? adopt(await this.#host.read(signal), want) : diff(before, want, keys);
    this.#rules = rulesOf(want, patch);
    const written = await this.#apply(patch, signal);
    this.#applied = want;
    await this.#foreign?.listen();
    return { readBack: before === null, ...written };
  }

  /** After a failure some tables may be changed and others not. */
  async #apply(patch: IptablesPatch, signal: AbortSignal): Promise<{ operations: number; bytes: number }> {
    try {
      return await this.#host.apply(patch, signal);
    } catch (error) {
      this.#applied = null;
      throw error;
    }
  }
}

function isRefused(error: unknown): error is RestoreFailed {
  return error instanceof RestoreFailed && error.kind === "refused";
}

/** Without an owner of the line that a restore names, no Service can be set aside. */
function refusedKeysOf(error: unknown): readonly (readonly [PortKey, string])[] | null {
  if (!isRefused(error)) return null;
  return error.owners.map((owner) => [owner, error.text]);
}

function without(plan: IptablesPlan, keys: Iterable<PortKey>): IptablesPlan {
  return withFragments(
    plan,
    plan.foundation,
    [...keys].map((key) => [key, undefined] as const),
  );
}

/** Jumps from built-in chains are not counted, as in kube-proxy. */
function rulesOf(plan: IptablesPlan, patch: IptablesPatch): readonly RuleCount[] {
  const writtenBy = ({ write, prepend }: Step) =>
    write.reduce((sum, { rules }) => sum + rules.length, 0) +
    prepend.filter(({ chain }) => chain.startsWith("KUBE-")).length;
  return (["filter", "nat"] as const).map((table) => ({
    table,
    held: ruleCount(plan, table),
    written: patch.steps
      .filter((step) => step.table === table)
      .reduce((sum, step) => sum + writtenBy(step), 0),
  }));
}
