// Sums what the kernel has counted for each ServicePort: no sum decreases, and lost counts are reported as unknown.
import type { Moment } from "../../model/clock.ts";
import { type CountGap, GapLog } from "../../model/count-gaps.ts";
import type { PortKey } from "../../model/snapshot.ts";
import type { Operation } from "../../plan/nftables/diff.ts";
import { type ElementKey, slotKey } from "../../plan/nftables/key.ts";
import type { Fragment, NftPlan, NftSet } from "../../plan/nftables/types.ts";
import type { PortCounts } from "../driver.ts";
import { type CountedGroup, type CountedPlace, placesOf } from "./counted-places.ts";

/** A place, whom it counts for, and what it had counted when it was last read. */
type Entry = { readonly place: CountedPlace; port: PortKey | null; readonly value: number };

type Sums = {
  fragment: Fragment;
  seen: number;
  connections: number;
  refused: number;
  outOfRange: number;
  readonly endpoints: Map<string, number>;
};

export class PortCountKeeper {
  /** By the name of the set, empty for named counters, and by the key within it. */
  readonly #entries = new Map<string, Map<ElementKey, Entry>>();
  readonly #ports = new Map<PortKey, Sums>();
  readonly #gaps = new GapLog();
  /** null: nothing was read yet, so nothing can be lost. */
  #lastRead: Moment | null = null;
  #sets: { readonly of: unknown; readonly byName: ReadonlyMap<string, NftSet> } = {
    of: null,
    byName: new Map(),
  };

  /** Whether anything was read: before that, changes need not be followed. */
  get hasRead(): boolean {
    return this.#lastRead !== null;
  }

  /** The host now holds this Plan; only these ServicePorts changed. Elements that it added or deleted were passed before. */
  settle(plan: NftPlan, keys: Iterable<PortKey>): void {
    const sets = this.#setsOf(plan);
    const changed = [...keys].filter((key) => this.#ports.get(key)?.fragment !== plan.fragments.get(key));
    const orphans = new Set<Entry>();
    for (const key of changed) this.#orphan(key, sets, orphans);
    for (const key of changed) this.#adopt(key, plan.fragments.get(key), sets, orphans);
    for (const entry of orphans) this.#forget(entry);
  }

  /** Elements were deleted, and had counted this much: packets by `elementId`. */
  deleted(removed: ReadonlyMap<string, number>): void {
    for (const [id, packets] of removed) {
      const space = id.indexOf(" ");
      const entry = this.#entries.get(id.slice(0, space))?.get(id.slice(space + 1));
      if (entry === undefined) continue;
      this.#take(entry, packets);
      this.#forget(this.#entryOf(entry.place)!);
    }
  }

  /** A Patch was applied: what it added and was there before had been lost. */
  added(patch: readonly Operation[], now: Moment): void {
    for (const operation of patch) {
      if (!("set" in operation) || !operation.set.counted) continue;
      const entries = this.#entries.get(operation.set.name);
      if (entries === undefined || entries.size === 0) continue;
      for (const id of idsIn(operation)) {
        const entry = entries.get(id);
        if (entry !== undefined) this.#lost(entry, now);
      }
    }
  }

  /** What to read; first packets before refused ones, so that their difference is never too large. */
  groups(): readonly CountedGroup[] {
    const groups = [...this.#entries.values()].map((entries) => {
      const places = [...entries.values()].map(({ place }) => place);
      return { set: places[0]!.set, places };
    });
    const isRefused = ({ places }: CountedGroup) => places[0]!.kind === "refused";
    return [...groups.filter((group) => !isRefused(group)), ...groups.filter(isRefused)];
  }

  /** What these places have counted; null: there is no such element. */
  read(places: readonly CountedPlace[], values: readonly (number | null)[], now: Moment): void {
    for (const [i, place] of places.entries()) {
      const entry = this.#entryOf(place);
      // Changed while it was read: the next read counts it.
      if (entry === undefined || entry.place !== place) continue;
      const value = values[i] ?? null;
      if (value === null) this.#lost(entry, now);
      else if (value < entry.value) this.#take(this.#lost(entry, now), value);
      else this.#take(entry, value);
    }
  }

  /** All places were read. A refused packet was seen before, so it is no connection. */
  finishRead(now: Moment): void {
    for (const sums of this.#ports.values())
      sums.connections = Math.max(sums.connections, sums.seen - sums.refused);
    this.#lastRead = now;
  }

  counts(): ReadonlyMap<PortKey, PortCounts> {
    return new Map(
      [...this.#ports].map(([key, { connections, refused, outOfRange, endpoints }]) => [
        key,
        { connections, refused, outOfRange, endpoints: endpoints.size === 0 ? null : new Map(endpoints) },
      ]),
    );
  }

  get gaps(): readonly CountGap[] {
    return this.#gaps.all;
  }

  #take({ place, port, value }: Entry, packets: number): void {
    this.#put({ place, port, value: packets });
    const sums = port === null ? undefined : this.#ports.get(port);
    if (sums === undefined) return;
    const more = packets - value;
    switch (place.kind) {
      case "seen":
        sums.seen += more;
        break;
      case "refused":
        sums.refused += more;
        break;
      case "outOfRange":
        sums.outOfRange += more;
        break;
      case "endpoint":
        sums.endpoints.set(place.endpoint!, (sums.endpoints.get(place.endpoint!) ?? 0) + more);
        break;
    }
  }

  /** Its value is gone, and it may count again from 0. */
  #lost({ place, port }: Entry, now: Moment): Entry {
    const entry: Entry = { place: { ...place }, port, value: 0 };
    this.#put(entry);
    if (this.#lastRead !== null) this.#gaps.add(this.#lastRead, now);
    return entry;
  }

  #orphan(key: PortKey, sets: ReadonlyMap<string, NftSet>, orphans: Set<Entry>): void {
    const sums = this.#ports.get(key);
    if (sums === undefined) return;
    for (const place of placesOf(sums.fragment, sets)) {
      const entry = this.#entryOf(place);
      if (entry?.port !== key) continue;
      entry.port = null;
      orphans.add(entry);
    }
  }

  /** An element that another ServicePort had keeps its value, which that one has counted. */
  #adopt(
    key: PortKey,
    fragment: Fragment | undefined,
    sets: ReadonlyMap<string, NftSet>,
    orphans: Set<Entry>,
  ): void {
    if (fragment === undefined) {
      this.#ports.delete(key);
      return;
    }
    const sums = this.#ports.get(key) ?? newSums(fragment);
    sums.fragment = fragment;
    this.#ports.set(key, sums);
    const endpoints = new Set<string>();
    for (const place of placesOf(fragment, sets)) {
      if (place.endpoint !== null) endpoints.add(place.endpoint);
      const entry = this.#entryOf(place);
      if (entry === undefined || entry.place.endpoint !== place.endpoint) {
        this.#put({ place, port: key, value: 0 });
        continue;
      }
      entry.port = key;
      orphans.delete(entry);
    }
    for (const endpoint of sums.endpoints.keys())
      if (!endpoints.has(endpoint)) sums.endpoints.delete(endpoint);
  }

  #entryOf({ set, id }: CountedPlace): Entry | undefined {
    return this.#entries.get(set?.name ?? "")?.get(id);
  }

  #put(entry: Entry): void {
    const name = entry.place.set?.name ?? "";
    let entries = this.#entries.get(name);
    if (entries === undefined) {
      entries = new Map();
      this.#entries.set(name, entries);
    }
    entries.set(entry.place.id, entry);
  }

  #forget(entry: Entry): void {
    const entries = this.#entries.get(entry.place.set?.name ?? "");
    if (entries?.get(entry.place.id) !== entry) return;
    entries.delete(entry.place.id);
    if (entries.size === 0) this.#entries.delete(entry.place.set?.name ?? "");
  }

  #setsOf({ foundation }: NftPlan): ReadonlyMap<string, NftSet> {
    if (this.#sets.of !== foundation)
      this.#sets = { of: foundation, byName: new Map(foundation.sets.map((set) => [set.name, set])) };
    return this.#sets.byName;
  }
}

function newSums(fragment: Fragment): Sums {
  return { fragment, seen: 0, connections: 0, refused: 0, outOfRange: 0, endpoints: new Map() };
}

function* idsIn(operation: Operation): Generator<ElementKey> {
  if (operation.kind === "add elements")
    for (const { key, slot } of operation.items) yield slot == null ? key : slotKey(key, slot);
  if (operation.kind === "add slots")
    for (const { key, backends } of operation.spreads)
      for (let slot = 0; slot < backends.length; slot++) yield slotKey(key, slot);
}
