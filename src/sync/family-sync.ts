// One family's part of the loop: its Routes, its Driver, and the record of each Sync.

import type { FamilySettings } from "../config/resolve/settings.ts";
import { HostError } from "../host/error.ts";
import type { Family } from "../model/address.ts";
import { type Problem, printProblem } from "../model/problem.ts";
import type { FamilySnapshot, PortKey } from "../model/snapshot.ts";
import {
  type Applied,
  type Driver,
  noProblems,
  type Repair,
  type RuleCount,
  type Verified,
} from "../modes/driver.ts";
import { conflicts } from "../routing/conflicts.ts";
import type { Routes } from "../routing/routes.ts";
import type { SyncRecord, Trigger } from "./record.ts";
import { routeInSlices } from "./slices.ts";

export class FamilySync {
  readonly family: Family;
  readonly #driver: Driver;
  readonly #wall: () => number;
  #routes: Routes | null = null;
  #endpoints = 0;
  #changed: ReadonlySet<PortKey> = new Set();
  /** What each ServicePort requests and does not get: another one holds it, or the mode cannot serve it. */
  readonly #contested = new Map<PortKey, readonly Problem[]>();
  #lacks: readonly Problem[] = noProblems;
  #conflicts: readonly Problem[] = [];
  #failed = false;
  #incomplete = false;
  /** The comparison with the host that the next Sync began with; null: it begins without. */
  #verification: Verification | null = null;
  /** What an unfinished Sync has done so far; null: the last one was finished. */
  #unfinished: Begun | null = null;

  constructor(family: Family, driver: Driver, wall: () => number) {
    this.family = family;
    this.#driver = driver;
    this.#wall = wall;
  }

  get routes(): Routes | null {
    return this.#routes;
  }

  /** Whether the last Sync failed, or left out what the host refused. */
  get incomplete(): boolean {
    return this.#incomplete;
  }

  /** Whether the last Sync failed. */
  get failed(): boolean {
    return this.#failed;
  }

  /** Whether the last Sync stopped because of a newer change: the next one continues, and its record covers both. */
  get unfinished(): boolean {
    return this.#unfinished !== null;
  }

  /** ServicePorts whose Routes the last Sync visited, with those of the unfinished ones before it. */
  get changed(): ReadonlySet<PortKey> {
    return this.#changed;
  }

  /** Services that request what they do not get, sorted; the same list as long as nothing changed. */
  get conflicts(): readonly Problem[] {
    return this.#conflicts;
  }

  /** One Sync. A host that refuses ends up in the record; a bug is thrown. */
  async run(
    snapshot: FamilySnapshot,
    settings: FamilySettings,
    trigger: Trigger,
    signal: AbortSignal,
    hasChange: () => boolean = () => false,
  ): Promise<SyncRecord> {
    const record = await this.#attempt(snapshot, settings, trigger, signal, hasChange);
    this.#failed = record.outcome.kind === "failed";
    this.#incomplete = record.outcome.kind === "failed" || record.outcome.refused.length > 0;
    return record;
  }

  async #attempt(
    snapshot: FamilySnapshot,
    settings: FamilySettings,
    trigger: Trigger,
    signal: AbortSignal,
    hasChange: () => boolean,
  ): Promise<SyncRecord> {
    const verification = this.#verification;
    const begun = this.#unfinished;
    this.#verification = null;
    this.#unfinished = null;
    const startedAt = begun?.startedAt ?? verification?.startedAt ?? this.#wall();
    const before = this.#routes;
    this.#routes = await routeInSlices(before, snapshot, settings, (part) =>
      this.#driver.prepare === undefined ? Promise.resolve() : this.#driver.prepare(part, signal),
    );
    this.#changed = begun === null ? this.#routes.changed : this.#changed.union(this.#routes.changed);
    this.#endpoints += this.#endpointsGained(before, this.#routes);
    this.#updateConflicts(this.#routes);
    const facts = () => ({
      family: this.family,
      trigger,
      startedAt,
      finishedAt: this.#wall(),
      changedPorts: this.#routes!.changed.size + (begun?.changedPorts ?? 0),
      servicePorts: this.#routes!.ports.size,
      endpoints: this.#endpoints,
      ...rulesOf(this.#driver.report().rules, verification?.repair.rules),
    });
    const { operations, bytes } = verification?.repair ?? nothing;
    const sum = (applied: Omit<Applied, "refused">) => ({
      ...applied,
      readBack: verification?.failure === null || applied.readBack,
      operations: operations + applied.operations + (begun?.operations ?? 0),
      bytes: bytes + applied.bytes + (begun?.bytes ?? 0),
    });
    try {
      // Whatever the trigger: the host may accept by now what it refused before.
      const { refused, unfinished, ...applied } = await this.#driver.sync(
        this.#routes,
        signal,
        this.#incomplete,
        hasChange,
      );
      this.#updateLacks();
      // The host could not be read although another program may have changed it: nothing is known to be in place.
      const unverified = applied.readBack ? null : (verification?.failure ?? null);
      const outcome = unverified === null ? ({ kind: "ok", refused } as const) : failureOf(unverified);
      const record = { ...facts(), ...sum(applied), outcome };
      if (unfinished) this.#unfinished = record;
      return record;
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      return { ...facts(), ...sum(nothing), outcome: failureOf(error) };
    }
  }

  /** Compares host and Plan and repairs; the record of the next Sync includes what that took. */
  async verify(trigger: "drift" | "resync", signal: AbortSignal): Promise<Verified | { failed: string }> {
    const startedAt = this.#wall();
    try {
      const found = await this.#driver.verify(signal);
      this.#verification = { startedAt, repair: found.repair ?? nothing, failure: null };
      return found;
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      this.#verification = { startedAt, repair: nothing, failure: error };
      return { failed: `${trigger}: ${error.message}` };
    }
  }

  #updateConflicts(routes: Routes): void {
    let isChanged = false;
    for (const key of routes.changed) {
      const routed = routes.ports.get(key);
      const unserved = routed === undefined ? [] : this.#driver.unserved(routed);
      const found = routed === undefined ? [] : [...conflicts(routes, routed), ...unserved];
      if (isSameList(found, this.#contested.get(key) ?? noProblems)) continue;
      isChanged = true;
      if (found.length > 0) this.#contested.set(key, found);
      else this.#contested.delete(key);
    }
    if (isChanged) this.#gatherConflicts();
  }

  #updateLacks(): void {
    const lacks = this.#driver.report().lacks;
    if (lacks === this.#lacks) return;
    this.#lacks = lacks;
    this.#gatherConflicts();
  }

  #gatherConflicts(): void {
    const ofPorts = [...this.#contested.keys()].sort().flatMap((key) => this.#contested.get(key)!);
    this.#conflicts = [...this.#lacks, ...ofPorts];
  }

  #endpointsGained(before: Routes | null, now: Routes): number {
    const count = (routes: Routes | null, key: PortKey) =>
      routes?.servicePorts.get(key)?.endpoints.length ?? 0;
    let gained = 0;
    for (const key of now.changed) gained += count(now, key) - count(before, key);
    return gained;
  }
}

function isSameList(some: readonly Problem[], others: readonly Problem[]): boolean {
  return (
    some.length === others.length &&
    some.every((problem, i) => printProblem(problem) === printProblem(others[i]!))
  );
}

type Begun = Pick<SyncRecord, "startedAt" | "changedPorts" | "operations" | "bytes">;

type Verification = {
  readonly startedAt: number;
  readonly repair: Repair;
  /** Why it could not be made; null: it was. */
  readonly failure: HostError | null;
};

function failureOf(error: HostError): SyncRecord["outcome"] {
  return { kind: "failed", message: error.message, ofRules: error.ofRules };
}

/** Rules written by a repair count as well as those that the driver reported last. */
function rulesOf(
  rules: readonly RuleCount[],
  repaired: readonly RuleCount[] = [],
): { readonly rules?: readonly RuleCount[] } {
  if (rules.length === 0) return {};
  const more = new Map(repaired.map(({ table, written }) => [table, written]));
  return { rules: rules.map((each) => ({ ...each, written: each.written + (more.get(each.table) ?? 0) })) };
}

const nothing: Omit<Applied, "refused"> = { readBack: false, operations: 0, bytes: 0 };
