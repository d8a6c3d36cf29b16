// The objects of a cluster in the model's types, each parsed once, and which of them changed since the last Snapshot.
import type { Address } from "../model/address.ts";
import type { Problem } from "../model/problem.ts";
import { type Cause, type Causes, type ClusterNode, noCauses, type ServiceName } from "../model/snapshot.ts";
import { ArrivalLog } from "./arrivals.ts";
import type { ParsedSlice, Slice } from "./endpointslice.ts";
import type { Identity } from "./identity.ts";
import { type Kind, kinds } from "./objects.ts";
import type { Parsed } from "./read.ts";
import type { Reading } from "./reading.ts";
import { isSameService, type Service } from "./service.ts";
import type { ServiceCIDR } from "./servicecidr.ts";
import { SliceIndex } from "./sliceindex.ts";
import { Tracked } from "./tracked.ts";

/** The event with which an object was received. */
export type Received = {
  /** The resourceVersion; empty where there is none. */
  readonly version: string;
  /** Milliseconds since 1970; 0: unknown. */
  readonly at: number;
};

export const unversioned: Received = { version: "", at: 0 };

/** Objects that a Snapshot names as causes; of more, only the number. */
const mostCauses = 100;

export class ClusterObjects {
  /** Their ports have the Endpoints that they were joined with last, which are no part of the object. */
  readonly services = new Tracked<Service>({ isSame: isSameService });
  readonly nodes = new Tracked<ClusterNode>();
  readonly cidrs = new Tracked<ServiceCIDR>();
  readonly slicesOf = new SliceIndex();
  /** Services that changed, or whose slices did, and were not joined since. */
  readonly unjoined = new Set<ServiceName>();
  readonly arrivals = new ArrivalLog();
  readonly #slices = new Tracked<Slice>();
  readonly #problems: Readonly<Record<Kind, Tracked<readonly Problem[]>>> = {
    Service: new Tracked(),
    EndpointSlice: new Tracked(),
    Node: new Tracked(),
    ServiceCIDR: new Tracked(),
  };
  /** The last event of each object that changed since the last Snapshot; null before the first, which has no causes. */
  #received: Map<string, Received> | null = null;
  readonly #all: readonly Tracked<unknown>[] = [
    this.services,
    this.#slices,
    this.nodes,
    this.cidrs,
    ...Object.values(this.#problems),
  ];

  put(reading: Reading, received: Received): void {
    const { who } = reading;
    switch (reading.kind) {
      case "Service":
        this.#setService(who, reading.parsed, received);
        break;
      case "EndpointSlice":
        this.#setSlice(who, reading.parsed, received);
        break;
      case "Node":
        this.#set(this.nodes, who, reading.parsed, received);
        break;
      case "ServiceCIDR":
        this.#set(this.cidrs, who, reading.parsed, received);
        break;
    }
  }

  remove(who: Key, received: Received): void {
    switch (who.kind) {
      case "Service":
        this.#setService(who, gone, received);
        break;
      case "EndpointSlice":
        this.#setSlice(who, { slice: gone, triggeredAt: null }, received);
        break;
      case "Node":
        this.#set(this.nodes, who, gone, received);
        break;
      case "ServiceCIDR":
        this.#set(this.cidrs, who, gone, received);
        break;
    }
  }

  /** Keys of all objects of a kind that left a trace here, if only a Problem. */
  keysOf(kind: Kind): readonly string[] {
    const tracked = this.#trackedOf(kind);
    const others = this.#problems[kind].keys().filter((key) => tracked.get(key) === undefined);
    return [...tracked.keys(), ...others];
  }

  get dirty(): boolean {
    return this.#all.some((tracked) => tracked.dirty);
  }

  /** Resets the changes. */
  settle(): void {
    for (const tracked of this.#all) tracked.settle();
    this.unjoined.clear();
    this.#received = new Map();
  }

  /** What changed since the last call of `settle`; nothing before the first. */
  causes(): Causes {
    const received = this.#received;
    if (received === null) return noCauses;
    const objects: Cause[] = [];
    let count = 0;
    for (const kind of kinds) {
      const tracked = this.#trackedOf(kind);
      count += tracked.changes().size;
      for (const [key, before] of tracked.changes()) {
        if (objects.length >= mostCauses) break;
        objects.push(causeOf(kind, key, before, tracked.get(key), received.get(`${kind} ${key}`)));
      }
    }
    if (count === 0) return noCauses;
    const slices = [...this.#slices.changes()]
      .slice(0, mostCauses)
      .flatMap(([key, before]) => [this.#slices.get(key), before]);
    return {
      objects,
      more: count - objects.length,
      ...(slices.length === 0 ? {} : { pods: () => podsIn(slices) }),
    };
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

  #setService(who: Key, parsed: Parsed<Service>, received: Received): void {
    const before = this.services.get(who.key);
    if (this.#set(this.services, who, parsed, received) !== before) this.unjoined.add(who.key);
    this.arrivals.service();
  }

  #setSlice(who: Key, { slice, triggeredAt }: ParsedSlice, received: Received): void {
    const before = this.#slices.get(who.key);
    const now = this.#set(this.#slices, who, slice, received);
    const known = slice.value ?? before;
    if (known !== undefined) this.arrivals.slice(known, now !== before);
    if (now === before) return;
    this.slicesOf.move(before, now);
    for (const slice of [before, now]) if (slice !== undefined) this.unjoined.add(slice.owner);
    if (now === undefined) this.arrivals.removed(before!);
    else if (triggeredAt !== null) this.arrivals.triggered(now, triggeredAt);
  }

  /** Returns what is known of the object now. */
  #set<V>(tracked: Tracked<V>, who: Key, { value, problems }: Parsed<V>, received: Received): V | undefined {
    this.#problems[who.kind].set(who.key, problems.length === 0 ? undefined : problems);
    const before = tracked.get(who.key);
    const now = tracked.set(who.key, value ?? undefined);
    if (now !== before) this.#received?.set(`${who.kind} ${who.key}`, received);
    return now;
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

/** By address; what comes first counts. */
function podsIn(slices: readonly (Slice | undefined)[]): ReadonlyMap<Address, string> {
  const names = new Map<Address, string>();
  for (const slice of slices)
    for (const [i, name] of slice?.pods?.entries() ?? []) {
      const { address } = slice!.endpoints[i]!;
      if (name !== "" && !names.has(address)) names.set(address, name);
    }
  return names;
}

/** `undefined`: the object did not exist, or was not for this proxy. */
function causeOf(
  kind: Kind,
  key: string,
  before: unknown,
  now: unknown,
  received: Received = unversioned,
): Cause {
  const slash = key.indexOf("/");
  return {
    kind,
    namespace: slash < 0 ? "" : key.slice(0, slash),
    name: key.slice(slash + 1),
    event: before === undefined ? "added" : now === undefined ? "deleted" : "modified",
    resourceVersion: received.version,
    receivedAt: received.at,
  };
}

type Key = Pick<Identity, "kind" | "key">;

const gone: Parsed<never> = { value: null, problems: [] };
