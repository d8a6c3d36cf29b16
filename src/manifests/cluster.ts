// Tracks the objects of a cluster event by event and returns Snapshots, with work in proportion to the change.
import { type Cidr, type Family, families } from "../model/address.ts";
import { keyed } from "../model/keyed.ts";
import { same } from "../model/same.ts";
import {
  type FamilySnapshot,
  noCauses,
  noTriggers,
  type PortKey,
  type ServiceName,
  type ServicePort,
  type Snapshot,
} from "../model/snapshot.ts";
import { atOnce, type Steps } from "../model/steps.ts";
import type { ByFamily } from "./addresses.ts";
import { ClusterObjects, type Received, unversioned } from "./cluster-objects.ts";
import { type Identity, identify, identity } from "./identity.ts";
import { joinEndpoints } from "./join.ts";
import type { Kind } from "./objects.ts";
import { type Reading, readObject } from "./reading.ts";
import type { Service } from "./service.ts";

/** Events of Services and EndpointSlices, whether or not they changed anything; for metrics. */
export type ClusterEvents = {
  readonly services: number;
  readonly slices: ByFamily<number>;
  /** Services that differ from the last Snapshot. */
  readonly servicesWaiting: number;
  /** Events since the last Snapshot that changed a slice. */
  readonly slicesWaiting: ByFamily<number>;
};

/** The event for the object at this index of a list; null: the event for known objects that the list does not contain. */
type ReceivedOf = (index: number | null) => Received;

export class Cluster {
  readonly #nodeName: string;
  readonly #known = new ClusterObjects();
  #last: Snapshot = emptySnapshot;
  /** What is known so far of the changes in the next Snapshot. */
  #changes: Changes = noChanges();
  /** Services joined ahead of the next Snapshot, as they were then. */
  readonly #joined = new Map<ServiceName, Service | undefined>();
  #visits = 0;

  constructor(nodeName: string) {
    this.#nodeName = nodeName;
  }

  /** Takes any JSON, best made `slim` before. Returns whether a Snapshot is worth taking. */
  upsert(kind: Kind, object: unknown, received: Received = unversioned): boolean {
    this.put(readObject(identify(kind, object), object), received);
    return this.pending;
  }

  /** The same of an object that was read already. */
  put(reading: Reading, received: Received = unversioned): void {
    if (this.#concernsUs(reading.who)) this.#known.put(reading, received);
  }

  /** Namespace is empty for Nodes and ServiceCIDRs. Returns whether a Snapshot is worth taking. */
  remove(kind: Kind, namespace: string, name: string, received: Received = unversioned): boolean {
    this.#known.remove(identity(kind, namespace, name), received);
    return this.pending;
  }

  /** These are all objects of the kind: missing ones are deleted. Returns whether a Snapshot is worth taking. */
  replace(kind: Kind, objects: Iterable<unknown>, received?: ReceivedOf): boolean {
    const readings = Iterator.from(objects).map((object) => readObject(identify(kind, object), object));
    atOnce(this.replaceInSteps(kind, readings, received));
    return this.pending;
  }

  /** The same of objects that were read already. Missing objects are deleted in the last step. */
  *replaceInSteps(kind: Kind, readings: Iterable<Reading>, received: ReceivedOf = () => unversioned): Steps {
    const found = new Set<string>();
    let index = 0;
    for (const reading of readings) {
      found.add(reading.who.key);
      this.put(reading, received(index++));
      if (found.size % stepSize === 0) yield;
    }
    for (const key of this.#known.keysOf(kind))
      if (!found.has(key)) this.#known.remove({ kind, key }, received(null));
  }

  /** Whether the next Snapshot would differ from the last. */
  get pending(): boolean {
    return this.#known.dirty;
  }

  /** What was received so far, and what of it the next Snapshot will contain. */
  get events(): ClusterEvents {
    const { arrivals, services } = this.#known;
    return {
      services: arrivals.services,
      slices: arrivals.slices,
      servicesWaiting: services.changes().size,
      slicesWaiting: arrivals.slicesWaiting,
    };
  }

  /** Services joined with their slices so far: tests compare it with the size of a change. */
  get visits(): number {
    return this.#visits;
  }

  /** Everything known now, and which ServicePorts differ from the Snapshot taken before. */
  take(): Snapshot {
    for (const name of this.#known.unjoined) this.#visit(name);
    const changes = this.#changes;
    this.#changes = noChanges();
    this.#joined.clear();
    this.#last = {
      ipv4: this.#familySnapshot("ipv4", changes.ipv4),
      ipv6: this.#familySnapshot("ipv6", changes.ipv6),
      node: this.#known.nodes.get(this.#nodeName) ?? null,
      triggeredAt: this.#known.arrivals.take(),
      causes: this.#known.causes(),
      problems: this.#known.problems(this.#last.problems),
    };
    this.#known.settle();
    return this.#last;
  }

  /**
   * Joins some of the changed Services with their slices ahead of the next Snapshot, so that `take` does not hold up other work for long.
   * Returns whether some were not joined yet. One that changed again is left to `take`: waiting for it could take for ever.
   */
  joinSome(): boolean {
    const { unjoined, services } = this.#known;
    let room = stepSize;
    for (const name of unjoined) {
      if (room <= 0) break;
      room -= 1 + this.#visit(name) / endpointsPerObject;
      this.#joined.set(name, services.get(name));
      unjoined.delete(name);
    }
    for (const name of unjoined) if (!this.#joined.has(name)) return true;
    return false;
  }

  /** A file or a list may hold many Nodes; only this one is used. */
  #concernsUs({ kind, name }: Identity): boolean {
    return kind !== "Node" || name === this.#nodeName;
  }

  /** Adds to the changes what is different now about one Service. Returns how many Endpoints its ports have. */
  #visit(name: ServiceName): number {
    this.#visits++;
    const { services } = this.#known;
    const slices = this.#known.slicesOf.of(name);
    const outdated = this.#joined.get(name);
    const [before, now] = [services.settled(name), services.get(name)];
    const joined = { ipv4: none, ipv6: none };
    for (const family of families) {
      const changes = this.#changes[family];
      for (const { key } of outdated?.[family] ?? none) changes.delete(key);
      for (const { key } of before?.[family] ?? none) changes.set(key, undefined);
      joined[family] = joinEndpoints(now?.[family] ?? none, slices).map((port) => {
        const old = this.#last[family].ports.get(port.key);
        const kept = keepIdentity(old, port);
        if (kept === old) changes.delete(port.key);
        else changes.set(port.key, kept);
        return kept;
      });
    }
    // The Snapshot and the known Service share their ports.
    if (now !== undefined) services.exchange(name, joined);
    return [...joined.ipv4, ...joined.ipv6].reduce((sum, { endpoints }) => sum + endpoints.length, 0);
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
    if (!this.#known.cidrs.dirty) return last;
    const now = [...new Set([...this.#known.cidrs.values()].flatMap((cidrs) => cidrs[family]))].sort();
    return same(last, now) ? last : now;
  }
}

/** About as many objects as are taken over or joined in 5 ms. */
const stepSize = 500;
/** So many Endpoints take about the time of one object. */
const endpointsPerObject = 20;

const none: readonly ServicePort[] = [];

/** By family, the ServicePorts that are new or different; undefined: gone. */
type Changes = ByFamily<Map<PortKey, ServicePort | undefined>>;

function noChanges(): Changes {
  return { ipv4: new Map(), ipv6: new Map() };
}

const emptyFamily: FamilySnapshot = { ports: keyed(), changed: new Set(), serviceCIDRs: [] };

const emptySnapshot: Snapshot = {
  ipv4: emptyFamily,
  ipv6: emptyFamily,
  node: null,
  triggeredAt: noTriggers,
  causes: noCauses,
  problems: [],
};

/** The old ServicePort if nothing is different, else the new one with the old Endpoints if those are not. */
function keepIdentity(old: ServicePort | undefined, port: ServicePort): ServicePort {
  if (old === undefined) return port;
  const kept = same(old.endpoints, port.endpoints) ? { ...port, endpoints: old.endpoints } : port;
  return same(old, kept) ? old : kept;
}
