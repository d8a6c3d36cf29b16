// Follows the objects of a cluster event by event and gives Snapshots, with work in proportion to the change.
import { type Cidr, type Family, families } from "../model/address.ts";
import { keyed } from "../model/keyed.ts";
import type { Problem } from "../model/problem.ts";
import {
  type ClusterNode,
  type FamilySnapshot,
  noArrivals,
  type PortKey,
  type Protocol,
  type ServiceName,
  type ServicePort,
  type Snapshot,
} from "../model/snapshot.ts";
import type { ByFamily } from "./addresses.ts";
import { ArrivalLog } from "./arrivals.ts";
import { type ParsedSlice, parseEndpointSlice, type Slice } from "./endpointslice.ts";
import { type Identity, identify, identity } from "./identity.ts";
import { joinEndpoints } from "./join.ts";
import { parseNode } from "./node.ts";
import { type Kind, kinds } from "./objects.ts";
import type { Parsed } from "./read.ts";
import { same } from "./same.ts";
import { parseService, type Service } from "./service.ts";
import { parseServiceCIDR, type ServiceCIDR } from "./servicecidr.ts";
import { SliceIndex } from "./sliceindex.ts";
import { Tracked } from "./tracked.ts";

export class Cluster {
  readonly #nodeName: string;
  readonly #services = new Tracked<Service>();
  readonly #slices = new Tracked<Slice>();
  readonly #nodes = new Tracked<ClusterNode>();
  readonly #cidrs = new Tracked<ServiceCIDR>();
  readonly #problems: Readonly<Record<Kind, Tracked<readonly Problem[]>>> = {
    Service: new Tracked(),
    EndpointSlice: new Tracked(),
    Node: new Tracked(),
    ServiceCIDR: new Tracked(),
  };
  readonly #all: readonly Tracked<unknown>[] = [
    this.#services,
    this.#slices,
    this.#nodes,
    this.#cidrs,
    ...Object.values(this.#problems),
  ];
  readonly #slicesOf = new SliceIndex();
  readonly #arrivals = new ArrivalLog();
  #last: Snapshot = nothingYet;
  #visits = 0;

  constructor(nodeName: string) {
    this.#nodeName = nodeName;
  }

  /** Takes any JSON, best made `slim` before. Returns whether a Snapshot is worth taking. */
  upsert(kind: Kind, object: unknown): boolean {
    this.#put(identify(kind, object), object);
    return this.pending;
  }

  /** Namespace is empty for Nodes and ServiceCIDRs. Returns whether a Snapshot is worth taking. */
  remove(kind: Kind, namespace: string, name: string): boolean {
    this.#put(identity(kind, namespace, name), removed);
    return this.pending;
  }

  /** These are all objects of the kind: what is missing is gone. Returns whether a Snapshot is worth taking. */
  replace(kind: Kind, objects: Iterable<unknown>): boolean {
    const found = new Set<string>();
    for (const object of objects) {
      const who = identify(kind, object);
      found.add(who.key);
      this.#put(who, object);
    }
    for (const key of this.#keysOf(kind)) {
      if (!found.has(key)) this.#put({ kind, namespace: "", name: "", key }, removed);
    }
    return this.pending;
  }

  /** Whether the next Snapshot would differ from the last. */
  get pending(): boolean {
    return this.#all.some((tracked) => tracked.dirty);
  }

  /** Services looked at by all calls of `take` so far: what tests hold against the size of a change. */
  get visits(): number {
    return this.#visits;
  }

  /** Everything known now, and which ServicePorts differ from the Snapshot taken before. */
  take(): Snapshot {
    const changes: Changes = { ipv4: new Map(), ipv6: new Map() };
    const touched = this.#touchedServices();
    for (const name of touched.all) this.#visit(name, changes);
    this.#last = {
      ipv4: this.#familySnapshot("ipv4", changes.ipv4),
      ipv6: this.#familySnapshot("ipv6", changes.ipv6),
      node: this.#nodes.get(this.#nodeName) ?? null,
      udpEndpointsChanged: touched.udp,
      arrivals: this.#arrivals.take(),
      problems: this.#allProblems(),
    };
    for (const tracked of this.#all) tracked.settle();
    return this.#last;
  }

  #put(who: Identity, object: unknown): void {
    switch (who.kind) {
      case "Service":
        this.#arrivals.service(
          this.#keep(this.#services, who, object === removed ? gone : parseService(who, object)),
        );
        return;
      case "EndpointSlice":
        this.#putSlice(
          who,
          object === removed ? { slice: gone, triggeredAt: null } : parseEndpointSlice(who, object),
        );
        return;
      case "Node":
        // A file or a list may hold many; only this one concerns us.
        if (who.key !== this.#nodeName) return;
        this.#keep(this.#nodes, who, object === removed ? gone : parseNode(who, object));
        return;
      case "ServiceCIDR":
        this.#keep(this.#cidrs, who, object === removed ? gone : parseServiceCIDR(who, object));
    }
  }

  #putSlice(who: Identity, { slice, triggeredAt }: ParsedSlice): void {
    const before = this.#slices.get(who.key);
    const changed = this.#keep(this.#slices, who, slice);
    if (before !== undefined || slice.value !== null) this.#arrivals.slice(changed);
    if (!changed) return;
    const now = this.#slices.get(who.key);
    this.#slicesOf.move(before, now);
    if (now === undefined) this.#arrivals.removed(before!);
    else if (triggeredAt !== null) this.#arrivals.triggered(now, triggeredAt);
  }

  #keep<V>(tracked: Tracked<V>, who: Identity, { value, problems }: Parsed<V>): boolean {
    this.#problems[who.kind].set(who.key, problems.length === 0 ? undefined : problems);
    return tracked.set(who.key, value ?? undefined);
  }

  #trackedOf(kind: Kind): Tracked<unknown> {
    switch (kind) {
      case "Service":
        return this.#services;
      case "EndpointSlice":
        return this.#slices;
      case "Node":
        return this.#nodes;
      case "ServiceCIDR":
        return this.#cidrs;
    }
  }

  /** Keys of all objects of a kind that left a trace here, if only a Problem. */
  #keysOf(kind: Kind): readonly string[] {
    return [...this.#trackedOf(kind).keys(), ...this.#problems[kind].keys()];
  }

  /** Services that changed, and those whose slices did; of the latter also those with UDP ports, for stale flows. */
  #touchedServices(): { readonly all: ReadonlySet<ServiceName>; readonly udp: ReadonlySet<ServiceName> } {
    const all = new Set(this.#services.changes().keys());
    const udp = new Set<ServiceName>();
    const add = (slice: Slice | undefined) => {
      if (slice === undefined) return;
      all.add(slice.owner);
      if (slice.ports.some(isUdp)) udp.add(slice.owner);
    };
    for (const [key, before] of this.#slices.changes()) {
      add(before);
      add(this.#slices.get(key));
    }
    return { all, udp };
  }

  /** Adds to `changes` what is different now about one Service. */
  #visit(name: ServiceName, changes: Changes): void {
    this.#visits++;
    const now = this.#services.get(name);
    const before = this.#services.changes().has(name) ? this.#services.changes().get(name) : now;
    const slices = this.#slicesOf.of(name);
    for (const family of families) {
      const ports = joinEndpoints(now?.[family] ?? [], slices);
      const known = this.#last[family].ports;
      for (const { key } of before?.[family] ?? []) changes[family].set(key, undefined);
      for (const port of ports) {
        const old = known.get(port.key);
        const kept = keepIdentity(old, port);
        if (kept === old) changes[family].delete(port.key);
        else changes[family].set(port.key, kept);
      }
    }
  }

  #familySnapshot(family: Family, changes: ReadonlyMap<PortKey, ServicePort | undefined>): FamilySnapshot {
    const last = this.#last[family];
    const serviceCIDRs = this.#serviceCIDRs(family);
    if (changes.size === 0 && last.changed.size === 0 && serviceCIDRs === last.serviceCIDRs) return last;
    return { ports: last.ports.with(changes), changed: new Set(changes.keys()), serviceCIDRs };
  }

  /** Two objects may declare the same network: it stays until the last of them is gone. */
  #serviceCIDRs(family: Family): readonly Cidr[] {
    const last = this.#last[family].serviceCIDRs;
    if (!this.#cidrs.dirty) return last;
    const now = [...new Set([...this.#cidrs.values()].flatMap((cidrs) => cidrs[family]))].sort();
    return same(last, now) ? last : now;
  }

  /** In the order of kinds and names. */
  #allProblems(): readonly Problem[] {
    const ofKinds = kinds.map((kind) => this.#problems[kind]);
    if (!ofKinds.some((problems) => problems.dirty)) return this.#last.problems;
    return ofKinds.flatMap((problems) =>
      problems
        .keys()
        .sort()
        .flatMap((key) => problems.get(key)!),
    );
  }
}

/** By family, the ServicePorts that are new or different; undefined: gone. */
type Changes = ByFamily<Map<PortKey, ServicePort | undefined>>;

const removed = Symbol("removed");

const gone: Parsed<never> = { value: null, problems: [] };

const emptyFamily: FamilySnapshot = { ports: keyed(), changed: new Set(), serviceCIDRs: [] };

const nothingYet: Snapshot = {
  ipv4: emptyFamily,
  ipv6: emptyFamily,
  node: null,
  udpEndpointsChanged: new Set(),
  arrivals: noArrivals,
  problems: [],
};

function isUdp({ protocol }: { readonly protocol: Protocol }): boolean {
  return protocol === "udp";
}

/** The old ServicePort if nothing is different, else the new one with the old Endpoints if those are not. */
function keepIdentity(old: ServicePort | undefined, port: ServicePort): ServicePort {
  if (old === undefined) return port;
  const kept = same(old.endpoints, port.endpoints) ? { ...port, endpoints: old.endpoints } : port;
  return same(old, kept) ? old : kept;
}
