// The nftables mode at work: Plan from Routes, Patch from Plans, and the kernel as the only truth when in doubt.
import { watchTables } from "../host/netlink/tableevents.ts";
import {
  NftablesHost,
  type NftablesHostOptions,
  PatchRefused,
  type RefusedPart,
} from "../host/nftables/host.ts";
import { type Problem, quoted } from "../model/problem.ts";
import type { PortKey } from "../model/snapshot.ts";
import { compile } from "../modes/nftables/compile.ts";
import { countOperations, diff, type Operation } from "../plan/nftables/diff.ts";
import { settled, unfold, unfoldChanged, withFragments } from "../plan/nftables/plan.ts";
import { type NftPlan, type NftTable, tableName } from "../plan/nftables/types.ts";
import type { Routes } from "../routing/routes.ts";
import type { Applied, Driver, Verified } from "./driver.ts";

export async function openNftables(options: NftablesHostOptions): Promise<Driver> {
  return new NftablesDriver(await NftablesHost.open(options), options);
}

class NftablesDriver implements Driver {
  readonly #host: NftablesHost;
  readonly #options: NftablesHostOptions;
  /** What the Routes ask for. */
  #want: NftPlan | null = null;
  /** What the host holds; null: we do not know. */
  #applied: NftPlan | null = null;
  /** Keys that differ between the two, besides those the next Routes name. */
  #pending = new Set<PortKey>();
  /** What the host refused, and why: left out until it changes or is tried again. */
  #refused = new Map<PortKey, string>();

  constructor(host: NftablesHost, options: NftablesHostOptions) {
    this.#host = host;
    this.#options = options;
  }

  async sync(routes: Routes, signal: AbortSignal, retryRefused = false): Promise<Applied> {
    this.#want = compile(this.#want, routes);
    for (const key of this.#want.changed) {
      this.#pending.add(key);
      this.#refused.delete(key);
    }
    if (retryRefused) {
      for (const key of this.#refused.keys()) this.#pending.add(key);
      this.#refused.clear();
    }
    return this.#reach(this.#want, signal);
  }

  async verify(signal: AbortSignal): Promise<Verified> {
    if (this.#applied === null) return { differences: 0 };
    const want = unfold(this.#applied);
    const have = await this.#host.read(want, signal);
    const patch = diff(have, want);
    if (patch.length === 0) return { differences: 0 };
    await this.#apply(patch, signal);
    return { differences: countOperations(patch) };
  }

  watch(onForeignChange: (what: string) => void, signal: AbortSignal): Promise<void> {
    const { family, netns } = this.#options;
    let touched: string | null = null;
    return watchTables(
      {
        changed: (change) => {
          if (change.family !== family || change.table !== tableName || change.portId === this.#host.portId)
            return;
          touched ??= `${change.verb} ${change.name}`;
        },
        committed: ({ process }) => {
          if (touched !== null) onForeignChange(`${quoted(process)} changed our table: ${touched}`);
          touched = null;
        },
        lost: () => onForeignChange("events of nf_tables were lost"),
      },
      signal,
      { ownPortId: this.#host.portId, ...(netns === undefined ? {} : { netns }) },
    );
  }

  close(): Promise<void> {
    return this.#host.close();
  }

  /** A first refusal may mean that the host is not what we thought: then it is read. A second one names a culprit. */
  async #reach(whole: NftPlan, signal: AbortSignal): Promise<Applied> {
    for (;;) {
      const want = this.#refused.size === 0 ? whole : without(whole, this.#refused.keys());
      const wasKnown = this.#applied !== null;
      try {
        const applied = await this.#attempt(want, [...this.#pending, ...this.#refused.keys()], signal);
        this.#pending.clear();
        return { ...applied, refused: [...this.#refused].map(([key, reason]) => refusal(key, reason)) };
      } catch (error) {
        if (!(error instanceof PatchRefused)) throw error;
        if (wasKnown) continue;
        const culprits = culpritsOf(error.parts, want);
        if (culprits.length === 0) throw error;
        for (const [key, reason] of culprits) this.#refused.set(key, reason);
      }
    }
  }

  async #attempt(
    want: NftPlan,
    keys: readonly PortKey[],
    signal: AbortSignal,
  ): Promise<Omit<Applied, "refused">> {
    const before = this.#applied;
    const tables: { have: NftTable | null; want: NftTable } =
      before === null ? await this.#readBack(want, signal) : unfoldChanged(before, want, keys);
    const written = await this.#apply(diff(tables.have, tables.want), signal);
    this.#applied = settled(before, want, before === null ? want.fragments.keys() : keys, tables.have);
    return { readBack: before === null, ...written };
  }

  async #readBack(want: NftPlan, signal: AbortSignal): Promise<{ have: NftTable | null; want: NftTable }> {
    const table = unfold(want);
    return { have: await this.#host.read(table, signal), want: table };
  }

  /** A refused Patch changed nothing, but says that the host is not what we thought. */
  async #apply(
    patch: readonly Operation[],
    signal: AbortSignal,
  ): Promise<{ operations: number; bytes: number }> {
    try {
      return await this.#host.apply(patch, signal);
    } catch (error) {
      this.#applied = null;
      throw error;
    }
  }
}

function without(plan: NftPlan, keys: Iterable<PortKey>): NftPlan {
  return withFragments(
    plan,
    plan.foundation,
    [...keys].map((key) => [key, undefined] as const),
  );
}

/** Which ServicePorts a refusal concerns; none when it concerns the foundation. */
function culpritsOf(parts: readonly RefusedPart[], want: NftPlan): readonly [PortKey, string][] {
  const culprits: [PortKey, string][] = [];
  for (const part of parts) {
    for (const [key, fragment] of want.fragments.entries()) {
      if (concerns(part, fragment)) culprits.push([key, part.reason]);
    }
  }
  return culprits;
}

function concerns(
  { operation, item }: RefusedPart,
  fragment: NonNullable<ReturnType<NftPlan["fragments"]["get"]>>,
): boolean {
  switch (operation.kind) {
    case "add elements":
    case "delete elements":
      return (
        fragment.elements.some(
          ({ set, key }) => set === operation.set.name && (item === null || key === item.key),
        ) ||
        fragment.spreads.some(
          ({ map, key }) => map === operation.set.name && (item === null || key === item.key),
        )
      );
    case "add chain":
    case "add rules":
      return [...fragment.chains, ...fragment.shared].some(({ name }) => name === operation.chain.name);
    case "add set":
      return fragment.sets.some(({ name }) => name === operation.set.name);
    case "add table":
    case "delete table":
    case "delete set":
    case "add counter":
    case "delete counter":
    case "flush chain":
    case "delete chain":
      return false;
  }
}

function refusal(key: PortKey, reason: string): Problem {
  return {
    kind: "refused",
    object: `Service ${key.split("/").slice(0, 2).join("/")}`,
    field: "",
    message: `the kernel refused ${key}: ${reason}; all others are in place, and this one will be tried again`,
  };
}
