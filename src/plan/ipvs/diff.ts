// The minimal operations from one Plan to another; reads only ServicePorts that may differ between them.
import { contains } from "../../model/address.ts";
import type { PortKey } from "../../model/snapshot.ts";
import { type Drain, type Draining, drainKey, isDrained } from "./drain.ts";
import { entryKey, serverKey } from "./names.ts";
import type {
  Claim,
  DestinationId,
  DestinationKey,
  Entry,
  Fragment,
  IpvsPatch,
  IpvsPlan,
  OwnedOperation,
  ServerId,
  ServerKey,
  SetName,
  VirtualServer,
  WantedServer,
} from "./types.ts";

export type Change = { readonly patch: IpvsPatch; readonly draining: Draining };

/**
 * From one Plan to another when they differ in nothing but the given keys. A set contains an address before it is reachable:
 * entries come first, then servers with their destinations, then addresses; everything goes the other way round.
 */
export function diff(have: IpvsPlan, want: IpvsPlan, keys: Iterable<PortKey>, draining: Draining): Change {
  const draft = new Draft(want, draining);
  const touched = idsOf(have, want, keys);
  for (const [id, { set, entry, owner }] of touched.entries) {
    if (have.entries.has(id) !== want.entries.has(id)) draft.entry(set, entry, want.entries.has(id), owner);
  }
  for (const id of touched.servers) draft.server(have.servers.get(id)?.[0], want.servers.get(id)?.[0]);
  for (const [address, owner] of touched.addresses) {
    if (have.addresses.has(address) !== want.addresses.has(address)) {
      draft.address(address, want.addresses.has(address), owner);
    }
  }
  return draft.done();
}

type Touched = {
  readonly servers: ReadonlySet<ServerKey>;
  readonly addresses: ReadonlyMap<string, PortKey>;
  readonly entries: ReadonlyMap<string, { set: SetName; entry: Entry; owner: PortKey }>;
};

function idsOf(have: IpvsPlan, want: IpvsPlan, keys: Iterable<PortKey>): Touched {
  const servers = new Set<ServerKey>();
  const addresses = new Map<string, PortKey>();
  const entries = new Map<string, { set: SetName; entry: Entry; owner: PortKey }>();
  const visit = (fragment: Fragment | undefined) => {
    for (const server of fragment?.servers ?? []) servers.add(serverKey(server));
    for (const address of fragment?.addresses ?? []) addresses.set(address, fragment!.key);
    for (const { set, entry } of fragment?.entries ?? []) {
      entries.set(entryKey(set, entry), { set, entry, owner: fragment!.key });
    }
  };
  for (const key of keys) {
    const [old, now] = [have.fragments.get(key), want.fragments.get(key)];
    if (old === now) continue;
    visit(old);
    visit(now);
  }
  return { servers, addresses, entries };
}

/** A Patch under construction, in whatever order its parts come. */
export class Draft {
  readonly #want: IpvsPlan;
  readonly #draining: Map<string, Drain>;
  readonly #deleted = new Set<ServerKey>();
  readonly #foundation: OwnedOperation[] = [];
  readonly #entries = { add: [] as EntryOperation[], delete: [] as EntryOperation[] };
  readonly #servers = { add: [] as OwnedOperation[], delete: [] as OwnedOperation[] };
  readonly #addresses = { add: [] as OwnedOperation[], delete: [] as OwnedOperation[] };

  constructor(want: IpvsPlan, draining: Draining) {
    this.#want = want;
    this.#draining = new Map(draining);
  }

  /** What everything else depends on. */
  foundation(operation: OwnedOperation): void {
    this.#foundation.push(operation);
  }

  entry(set: SetName, entry: Entry, wanted: boolean, owner: PortKey | null): void {
    if (wanted) this.#entries.add.push({ kind: "add entry", set, entry, owner });
    else this.#entries.delete.push({ kind: "delete entry", set, entry, owner });
  }

  address(address: string, wanted: boolean, owner: PortKey | null): void {
    if (wanted) this.#addresses.add.push({ kind: "add address", address, owner });
    else this.#addresses.delete.push({ kind: "delete address", address, owner });
  }

  server(old: Claim | undefined, now: Claim | undefined): void {
    if (old?.server === now?.server) return;
    if (now === undefined) this.deleteServer(old!.server, old!.owner);
    else if (old === undefined) this.addServer(now);
    else {
      this.setServer(old.server, now);
      this.destinations(now, old.server.destinations);
    }
  }

  addServer({ server, owner }: Claim): void {
    this.#servers.add.push({ kind: "add server", server: plain(server), owner });
    this.destinations({ server, owner }, new Map());
  }

  setServer(old: VirtualServer, { server, owner }: Claim): void {
    if (isSame(old, server)) return;
    this.#servers.add.push({ kind: "set server", server: plain(server), owner });
  }

  /** Its destinations go with it, those that drain as well. */
  deleteServer(server: ServerId, owner: PortKey | null): void {
    if (this.#want.excluded.some((cidr) => contains(cidr, server.address))) return;
    this.#servers.delete.push({ kind: "delete server", server: idOf(server), owner });
    this.#deleted.add(serverKey(server));
  }

  /** New ones first, so that there is always a real server. One that returns while it drains keeps its connections. */
  destinations({ server, owner }: Claim, held: ReadonlyMap<DestinationKey, DestinationId>): void {
    for (const [key, destination] of server.destinations) {
      const isHeld = held.has(key);
      const isBack = this.#draining.delete(drainKey(server, destination));
      if (isBack) this.join("set destination", server, destination, owner);
      else if (!isHeld) this.join("add destination", server, destination, owner);
    }
    for (const [key, destination] of held)
      if (!server.destinations.has(key)) this.leave(server, destination, owner);
  }

  join(
    kind: "add destination" | "set destination",
    server: ServerId,
    { address, port }: DestinationId,
    owner: PortKey,
  ): void {
    this.#servers.add.push({ kind, server: idOf(server), destination: { address, port, weight: 1 }, owner });
  }

  /** `weight`: the one it has now. */
  leave(server: ServerId, { address, port }: DestinationId, owner: PortKey | null, weight = 1): void {
    const id = idOf(server);
    if (!isDrained(id)) {
      this.#servers.add.push({
        kind: "delete destination",
        server: id,
        destination: { address, port },
        owner,
      });
      return;
    }
    if (weight !== 0) {
      const destination = { address, port, weight: 0 };
      this.#servers.add.push({ kind: "set destination", server: id, destination, owner });
    }
    this.#draining.set(drainKey(id, { address, port }), { server: id, destination: { address, port } });
  }

  done(): Change {
    const order = new Map(this.#want.sets.map(({ name }, i) => [name, i]));
    const inOrder = (a: EntryOperation, b: EntryOperation) => order.get(a.set)! - order.get(b.set)!;
    return {
      patch: {
        family: this.#want.family,
        grow: [
          ...this.#foundation,
          ...this.#entries.add.toSorted(inOrder),
          ...this.#servers.add,
          ...this.#addresses.add,
        ],
        shrink: [
          ...this.#entries.delete.toSorted(inOrder).reverse(),
          ...this.#addresses.delete,
          ...this.#servers.delete,
        ],
      },
      draining: this.#stillDraining(),
    };
  }

  #stillDraining(): Draining {
    if (this.#deleted.size === 0) return this.#draining;
    return new Map([...this.#draining].filter(([, { server }]) => !this.#deleted.has(serverKey(server))));
  }
}

type EntryOperation = Extract<OwnedOperation, { kind: "add entry" | "delete entry" }>;

export function isSame(a: VirtualServer, b: VirtualServer): boolean {
  return a.scheduler === b.scheduler && a.flags === b.flags && a.timeoutSeconds === b.timeoutSeconds;
}

function idOf({ address, port, protocol }: ServerId): ServerId {
  return { address, port, protocol };
}

function plain({ address, port, protocol, scheduler, flags, timeoutSeconds }: WantedServer): VirtualServer {
  return { address, port, protocol, scheduler, flags, timeoutSeconds };
}
