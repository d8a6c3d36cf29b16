// Reads what the table has counted, and follows the driver's changes so that no count is lost with an element.
import type { TableHost, Written } from "../../../host/nftables/host.ts";
import type { Moment } from "../../../model/clock.ts";
import type { PortKey } from "../../../model/snapshot.ts";
import type { Operation } from "../../../plan/nftables/diff.ts";
import type { NftPlan } from "../../../plan/nftables/types.ts";
import type { Counted } from "../../driver.ts";
import type { CountedGroup } from "../counted-places.ts";
import { PortCountKeeper } from "../port-counts.ts";

/** Elements read between two turns of other work. */
const perStep = 1024;

export class Counting {
  readonly #host: Pick<TableHost, "readPackets" | "readCounters">;
  readonly #now: () => Moment;
  readonly #keeper = new PortCountKeeper();
  #reading: Promise<Counted> | null = null;

  constructor(host: Pick<TableHost, "readPackets" | "readCounters">, now: () => Moment) {
    this.#host = host;
    this.#now = now;
  }

  /** After each Patch, before `holds`. */
  applied(patch: readonly Operation[], removed: Written["removed"]): void {
    if (!this.#keeper.hasRead) return;
    if (removed !== undefined) this.#keeper.deleted(removed);
    this.#keeper.added(patch, this.#now());
  }

  /** The host has this Plan; it differs from the one before in these ServicePorts at most. */
  holds(plan: NftPlan, keys: Iterable<PortKey>): void {
    if (this.#keeper.hasRead) this.#keeper.settle(plan, keys);
  }

  /** One read at a time: a second caller gets the result of the first. `plan` null: nothing is known to be there. */
  read(plan: NftPlan | null, signal: AbortSignal): Promise<Counted> {
    this.#reading ??= this.#read(plan, signal).finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #read(plan: NftPlan | null, signal: AbortSignal): Promise<Counted> {
    const keeper = this.#keeper;
    if (plan !== null) {
      if (!keeper.hasRead) keeper.settle(plan, plan.fragments.keys());
      for (const group of keeper.groups()) await this.#readGroup(group, signal);
      keeper.finishRead(this.#now());
    }
    return { ports: keeper.counts(), gaps: keeper.gaps };
  }

  async #readGroup({ set, places }: CountedGroup, signal: AbortSignal): Promise<void> {
    if (set === null) {
      const counters = await this.#host.readCounters(signal);
      this.#keeper.read(
        places,
        places.map(({ key }) => counters.get(key) ?? null),
        this.#now(),
      );
      return;
    }
    for (let from = 0; from < places.length; from += perStep) {
      const some = places.slice(from, from + perStep);
      this.#keeper.read(some, await this.#host.readPackets(set, some, signal), this.#now());
    }
  }
}
