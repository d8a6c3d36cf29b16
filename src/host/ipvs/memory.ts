// A host of ipvs mode in memory: it accepts and refuses Operations like the kernel.
import { type Address, type Family, familyOf } from "../../model/address.ts";
import { destinationKey, serverKey } from "../../plan/ipvs/names.ts";
import { freshState } from "../../plan/ipvs/state.ts";
import type {
  Destination,
  DestinationKey,
  Entry,
  HeldDestination,
  HeldServer,
  HeldSet,
  IpSet,
  IpvsState,
  Operation,
  ServerConnections,
  ServerId,
  ServerKey,
  SetName,
  VirtualServer,
} from "../../plan/ipvs/types.ts";
import { HostError } from "../error.ts";
import type { Applied, Failure } from "./applied.ts";
import type { IpvsHost, LeavingAddresses } from "./host.ts";
import type { Timeouts } from "./read.ts";
import { longestName, refusalText, type ServerOperation } from "./refusals.ts";

/** Those of Linux 6.1. */
const schedulers = "rr wrr lc wlc lblc lblcr sh mh dh sed nq fo ovf".split(" ");
const setSize = 65_536;

type Server = HeldServer & { readonly destinations: Map<DestinationKey, HeldDestination> };
type KeptSet = HeldSet & { readonly entries: Set<Entry> };

export class MemoryIpvsHost implements IpvsHost {
  readonly family: Family;
  readonly #servers = new Map<ServerKey, Server>();
  readonly #addresses = new Set<Address>();
  readonly #sets = new Map<SetName, KeptSet>();
  readonly #pinned = new Set<SetName>();
  #link: IpvsState["link"] = "absent";
  #broken: string | null = null;
  #refusing: Operation["kind"] | null = null;
  readonly #watchers = new Set<LeavingAddresses>();
  /** Every list of Operations that was applied. */
  readonly applied: (readonly Operation[])[] = [];
  timeouts: Timeouts | null = null;
  /** What virtual servers have counted, in total and by real server; a server that is made counts from 0. */
  readonly #connections = new Map<ServerKey, Map<DestinationKey, number>>();

  constructor(family: Family) {
    this.family = family;
  }

  /** From now on every request fails; null: requests work again. */
  breakDown(message: string | null): void {
    this.#broken = message;
  }

  /** Operations of this kind are refused; null: none is. */
  refuse(kind: Operation["kind"] | null): void {
    this.#refusing = kind;
  }

  /** What a real server counts as its connections. */
  count(server: ServerId, at: DestinationKey, active: number, inactive = 0): void {
    const { destinations } = this.#servers.get(serverKey(server))!;
    destinations.set(at, { ...destinations.get(at)!, active, inactive });
  }

  /** As connections to a virtual server would, which this real server gets. */
  connect(server: ServerId, to: DestinationKey, connections: number): void {
    const counted = this.#connections.get(serverKey(server))!;
    counted.set(to, (counted.get(to) ?? 0) + connections);
  }

  /** As `ipvsadm -Z` would. */
  zero(): void {
    for (const counted of this.#connections.values()) counted.clear();
  }

  /** As `ipvsadm -C` would. */
  clear(): void {
    this.#servers.clear();
  }

  /** A rule refers to this set: it cannot be destroyed. */
  pin(set: SetName): void {
    this.#pinned.add(set);
  }

  read(): Promise<IpvsState> {
    return this.#answer(() => ({
      ...freshState(this.family),
      servers: new Map([...this.#servers].map(([key, server]) => [key, copied(server)])),
      link: this.#link,
      addresses: new Set(this.#addresses),
      sets: new Map([...this.#sets].map(([name, set]) => [name, { ...set, entries: new Set(set.entries) }])),
    }));
  }

  readDestinations(
    servers: readonly ServerId[],
  ): Promise<ReadonlyMap<ServerKey, HeldServer["destinations"]>> {
    return this.#answer(() => {
      const held = servers.flatMap((server) => this.#servers.get(serverKey(server)) ?? []);
      return new Map(held.map((server) => [serverKey(server), copied(server).destinations]));
    });
  }

  readConnections(destinations: boolean): Promise<ReadonlyMap<ServerKey, ServerConnections>> {
    return this.#answer(() => {
      const found = new Map<ServerKey, ServerConnections>();
      for (const [key, server] of this.#servers) {
        const counted = this.#connections.get(key)!;
        const each = [...server.destinations.keys()].map((at) => [at, counted.get(at) ?? 0] as const);
        found.set(key, { connections: sumOf(counted), destinations: destinations ? new Map(each) : null });
      }
      return found;
    });
  }

  readConnectionsOf(server: ServerId): Promise<number | null> {
    const key = serverKey(server);
    return this.#answer(() => (this.#servers.has(key) ? sumOf(this.#connections.get(key)!) : null));
  }

  apply(operations: readonly Operation[]): Promise<Applied> {
    return this.#answer(() => {
      this.applied.push(operations);
      const failures: Failure[] = [];
      for (const [at, operation] of operations.entries()) {
        const refusal = this.#carryOut(operation);
        if (refusal !== null) failures.push({ operation: at, ...refusal });
      }
      return { messages: operations.length, bytes: 0, failures };
    });
  }

  setTimeouts(timeouts: Timeouts): Promise<void> {
    return this.#answer(() => {
      this.timeouts = timeouts;
    });
  }

  watchAddresses(listener: LeavingAddresses, signal: AbortSignal): Promise<void> {
    this.#watchers.add(listener);
    signal.addEventListener("abort", () => this.#watchers.delete(listener), { once: true });
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #answer<T>(work: () => T): Promise<T> {
    if (this.#broken !== null) throw new HostError("unavailable", this.#broken);
    return work();
  }

  #carryOut(operation: Operation): Refused | null {
    if (operation.kind === this.#refusing) return refused("ENOMEM", "not now");
    switch (operation.kind) {
      case "add link":
        if (this.#link === "absent") this.#link = "dummy";
        return null;
      case "delete link":
        this.#link = "absent";
        for (const address of this.#addresses) this.#deleteAddress(address);
        return null;
      case "add address":
        if (this.#link === "absent") return refused("ENODEV", "there is no link kube-ipvs0");
        this.#addresses.add(operation.address);
        return null;
      case "delete address":
        this.#deleteAddress(operation.address);
        return null;
      case "add server":
      case "set server":
        return this.#setServer(operation);
      case "delete server":
        this.#servers.delete(serverKey(operation.server));
        return null;
      case "add destination":
      case "set destination":
        return this.#setDestination(operation);
      case "delete destination":
        this.#servers
          .get(serverKey(operation.server))
          ?.destinations.delete(destinationKey(operation.destination));
        return null;
      case "create set":
        return this.#createSet(operation.set);
      case "destroy set":
        if (this.#pinned.has(operation.set)) return refused("", inUse);
        this.#sets.delete(operation.set);
        return null;
      case "add entry":
      case "delete entry":
        return this.#changeEntry(operation);
    }
  }

  #deleteAddress(address: Address): void {
    if (this.#addresses.delete(address)) for (const { left } of this.#watchers) left(address);
  }

  #setServer(operation: Extract<Operation, { readonly server: VirtualServer }>): Refused | null {
    const { kind, server } = operation;
    const key = serverKey(server);
    const before = this.#servers.get(key);
    if (server.scheduler.length > longestName) return because(operation, "EINVAL");
    if (before === undefined && kind === "set server") return because(operation, "ESRCH");
    if (!schedulers.includes(server.scheduler)) return because(operation, "ENOENT");
    if (before === undefined) this.#connections.set(key, new Map());
    this.#servers.set(key, { ...server, destinations: before?.destinations ?? new Map() });
    return null;
  }

  #setDestination(operation: Extract<Operation, { readonly destination: Destination }>): Refused | null {
    const { kind, server, destination } = operation;
    const held = this.#servers.get(serverKey(server));
    if (held === undefined) return because(operation, "ESRCH");
    if (familyOf(destination.address) !== familyOf(server.address)) return because(operation, "EINVAL");
    if (destination.weight < 0) return because(operation, "ERANGE");
    const key = destinationKey(destination);
    const before = held.destinations.get(key);
    if (before === undefined && kind === "set destination") return because(operation, "ENOENT");
    const { address, port, weight } = destination;
    held.destinations.set(key, { active: 0, inactive: 0, ...before, address, port, weight });
    return null;
  }

  #createSet({ name, type, family }: IpSet): Refused | null {
    if (name.length > 31) return refused("", "Syntax error: setname is longer than 31 characters");
    const isBitmap = type === "bitmap:port";
    const before = this.#sets.get(name);
    // The kernel compares neither the family nor the size of the hash.
    if (before !== undefined)
      return before.type === type
        ? null
        : refused("", "Set cannot be created: set with the same name already exists");
    this.#sets.set(name, {
      type,
      family: isBitmap ? null : family,
      maxElements: isBitmap ? null : setSize,
      entries: new Set(),
    });
    return null;
  }

  #changeEntry(operation: {
    kind: "add entry" | "delete entry";
    set: SetName;
    entry: Entry;
  }): Refused | null {
    const set = this.#sets.get(operation.set);
    if (set === undefined) return refused("", "The set with the given name does not exist");
    if (operation.kind === "delete entry") set.entries.delete(operation.entry);
    else if (set.entries.size >= (set.maxElements ?? setSize) && !set.entries.has(operation.entry))
      return refused("", "Hash is full, cannot add more elements");
    else set.entries.add(operation.entry);
    return null;
  }
}

function sumOf(counted: ReadonlyMap<DestinationKey, number>): number {
  return [...counted.values()].reduce((sum, value) => sum + value, 0);
}

const inUse = "Set cannot be destroyed: it is in use by a kernel component";

type Refused = Omit<Failure, "operation">;

function refused(errno: string, meaning: string): Refused {
  return { errno, reason: errno === "" ? meaning : `${meaning} (${errno})` };
}

function because(operation: ServerOperation, errno: string): Refused {
  return refused(errno, refusalText(operation, errno) ?? "");
}

function copied(server: Server): HeldServer {
  return { ...server, destinations: new Map(server.destinations) };
}
