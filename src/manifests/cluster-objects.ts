// The objects of a cluster in the model's types, each parsed once, and which of them changed since the last Snapshot.
import type { Problem } from "../model/problem.ts";
import type { ClusterNode, ServiceName } from "../model/snapshot.ts";
import { ArrivalLog } from "./arrivals.ts";
import type { ParsedSlice, Slice } from "./endpointslice.ts";
import type { Identity } from "./identity.ts";
import { type Kind, kinds } from "./objects.ts";
import type { Parsed } from "./read.ts";
import type { Reading } from "./reading.ts";
import type { Service } from "./service.ts";
import type { ServiceCIDR } from "./servicecidr.ts";
import { SliceIndex } from "./sliceindex.ts";
import { Tracked } from "./tracked.ts";

export class ClusterObjects {
  readonly services = new Tracked<Service>();
  readonly nodes = new Tracked<ClusterNode>();
  readonly cidrs = new Tracked<ServiceCIDR>();
  readonly slicesOf = new SliceIndex();
  readonly arrivals = new ArrivalLog();
  readonly #slices = new Tracked<Slice>();
  readonly #problems: Readonly<Record<Kind, Tracked<readonly Problem[]>>> = {
    Service: new Tracked(),
    EndpointSlice: new Tracked(),
    Node: new Tracked(),
    ServiceCIDR: new Tracked(),
  };
  readonly #all: readonly Tracked<unknown>[] = [
    this.services,
    this.#slices,
    this.nodes,
    this.cidrs,
    ...Object.values(this.#problems),
  ];

  put(reading: Reading): void {
    const { who } = reading;
    switch (reading.kind) {
      case "Service":
        this.#setService(who, reading.parsed);
        break;
      case "EndpointSlice":
        this.#setSlice(who, reading.parsed);
        break;
      case "Node":
        this.#set(this.nodes, who, reading.parsed);
        break;
      case "ServiceCIDR":
        this.#set(this.cidrs, who, reading.parsed);
        break;
    }
  }

  remove(who: Key): void {
    switch (who.kind) {
      case "Service":
        this.#setService(who, gone);
        break;
      case "EndpointSlice":
        this.#setSlice(who, { slice: gone, triggeredAt: null });
        break;
      case "Node":
        this.#set(this.nodes, who, gone);
        break;
      case "ServiceCIDR":
        this.#set(this.cidrs, who, gone);
        break;
    }
  }

  /** Keys of all objects of a kind that left a trace here, if only a Problem. */
  keysOf(kind: Kind): ReadonlySet<string> {
    return new Set([...this.#trackedOf(kind).keys(), ...this.#problems[kind].keys()]);
  }

  get dirty(): boolean {
    return this.#all.some((tracked) => tracked.dirty);
  }

  /** Resets the changes. */
  settle(): void {
    for (const tracked of this.#all) tracked.settle();
  }

  /** Services that are unchanged themselves, but not their slices. */
  ownersOfChangedSlices(): ReadonlySet<ServiceName> {
    const changed = this.services.changes();
    const same = new Set<ServiceName>();
    const add = (slice: Slice | undefined) => {
      if (slice !== undefined && !changed.has(slice.owner)) same.add(slice.owner);
    };
    for (const [key, before] of this.#slices.changes()) {
      add(before);
      add(this.#slices.get(key));
    }
    return same;
  }

  /** In the order of kinds and names; `last` when nothing changed about them. */
  problems(last: readonly Problem[]): readonly Problem[] {
    const ofKinds = kinds.map((kind) => this.#problems[kind]);
    if (!ofKinds.some((problems) => problems.dirty)) return last;
    return ofKinds.flatMap((problems) =>
      problems
        .keys()
        .sort()
        .flatMap((key) => problems.get(key)!),
    );
  }

  #setService(who: Key, parsed: Parsed<Service>): void {
    this.#set(this.services, who, parsed);
    this.arrivals.service();
  }

  #setSlice(who: Key, { slice, triggeredAt }: ParsedSlice): void {
    const before = this.#slices.get(who.key);
    const now = this.#set(this.#slices, who, slice);
    const known = slice.value ?? before;
    if (known !== undefined) this.arrivals.slice(known, now !== before);
    if (now === before) return;
    this.slicesOf.move(before, now);
    if (now === undefined) this.arrivals.removed(before!);
    else if (triggeredAt !== null) this.arrivals.triggered(now, triggeredAt);
  }

  /** Returns what is known of the object now. */
  #set<V>(tracked: Tracked<V>, who: Key, { value, problems }: Parsed<V>): V | undefined {
    this.#problems[who.kind].set(who.key, problems.length === 0 ? undefined : problems);
    return tracked.set(who.key, value ?? undefined);
  }

  #trackedOf(kind: Kind): Tracked<unknown> {
    switch (kind) {
      case "Service":
        return this.services;
      case "EndpointSlice":
        return this.#slices;
      case "Node":
        return this.nodes;
      case "ServiceCIDR":
        return this.cidrs;
    }
  }
}

type Key = Pick<Identity, "kind" | "key">;

const gone: Parsed<never> = { value: null, problems: [] };
