// IPVS as data: virtual and real servers, addresses of the link they answer at, IP sets; and what changes them.
import type { Address, Cidr, Family } from "../../model/address.ts";
import type { Keyed } from "../../model/keyed.ts";
import type { PortKey, Protocol } from "../../model/snapshot.ts";
import type { IptablesPlan } from "../iptables/types.ts";

/** The link that carries the addresses of Services, so that their packets count as local. It stays down. */
export const linkName = "kube-ipvs0";

/** Where a virtual server answers. */
export type ServerId = { readonly address: Address; readonly port: number; readonly protocol: Protocol };

/** `10.96.0.1:443/TCP` or `[fd00::1]:80/UDP`, as kube-proxy writes it. */
export type ServerKey = string;

/** A virtual server without its real servers. The netmask is always that of one address, forwarding always NAT. */
export type VirtualServer = ServerId & {
  readonly scheduler: string;
  /** Of `serverFlag`, without `hashed`. */
  readonly flags: number;
  /** How long a client stays with its real server; 0 without `persistent`. */
  readonly timeoutSeconds: number;
};

/** `hashed` is set by the kernel on every server; a host takes it out of what it reads. */
export const serverFlag = { persistent: 0x1, hashed: 0x2, hashSourcePort: 0x10 } as const;

export type DestinationId = { readonly address: Address; readonly port: number };

/** `10.0.0.1:8080` or `[fd00::1]:8080`, within its server. */
export type DestinationKey = string;

/** A real server. Weight 0: it keeps its connections and gets no new ones. */
export type Destination = DestinationId & { readonly weight: number };

/** As read from the kernel, with the connections it counts. */
export type HeldDestination = Destination & { readonly active: number; readonly inactive: number };

export type HeldServer = VirtualServer & {
  readonly destinations: ReadonlyMap<DestinationKey, HeldDestination>;
};

/** Connections that a virtual server has scheduled since it was made, and how many of them each of its real servers got. */
export type ServerConnections = {
  readonly connections: number;
  /** null: not read. */
  readonly destinations: ReadonlyMap<DestinationKey, number> | null;
};

export type SetName = string;

export type SetType = "hash:ip" | "hash:ip,port" | "hash:ip,port,ip" | "hash:ip,port,net" | "bitmap:port";

/** Hash types: `family inet|inet6 hashsize 1024 maxelem 65536`; bitmaps: `range 0-65535`. */
export type IpSet = { readonly name: SetName; readonly type: SetType; readonly family: Family };

/** As `ipset save` prints it: `10.0.0.1,tcp:80`, `10.0.0.1,tcp:80,10.9.0.0/16`, `30080`; one address has no prefix length. */
export type Entry = string;

/** A set as it is on a host, made by any program. */
export type HeldSet = {
  readonly type: string;
  /** null: the type has none. */
  readonly family: Family | null;
  /** null: the type has none. */
  readonly maxElements: number | null;
  readonly entries: ReadonlySet<Entry>;
};

/**
 * What a host holds, in one family: what reading back returns. Servers that answer to marks are left out, as are sets
 * whose name does not begin with `KUBE-`, link-local IPv6 addresses and loopback addresses.
 */
export type IpvsState = {
  readonly family: Family;
  readonly servers: ReadonlyMap<ServerKey, HeldServer>;
  readonly link: "absent" | "dummy" | "other";
  /** On the link. */
  readonly addresses: ReadonlySet<Address>;
  readonly sets: ReadonlyMap<SetName, HeldSet>;
};

/**
 * One change of a host. Operations are applied in order, each on its own: one that is refused does not stop the
 * others. Adding an address or entry that exists, or deleting one that does not, is no failure; neither is it to
 * delete a server or destination that is gone, nor to make the link or a set that exists. A server or destination
 * that exists is set when it is added.
 */
export type Operation =
  | { readonly kind: "add link" }
  | { readonly kind: "delete link" }
  | { readonly kind: "add address"; readonly address: Address }
  | { readonly kind: "delete address"; readonly address: Address }
  | { readonly kind: "add server"; readonly server: VirtualServer }
  | { readonly kind: "set server"; readonly server: VirtualServer }
  | { readonly kind: "delete server"; readonly server: ServerId }
  | { readonly kind: "add destination"; readonly server: ServerId; readonly destination: Destination }
  | { readonly kind: "set destination"; readonly server: ServerId; readonly destination: Destination }
  | { readonly kind: "delete destination"; readonly server: ServerId; readonly destination: DestinationId }
  | { readonly kind: "create set"; readonly set: IpSet }
  | { readonly kind: "destroy set"; readonly set: SetName }
  | { readonly kind: "add entry"; readonly set: SetName; readonly entry: Entry }
  | { readonly kind: "delete entry"; readonly set: SetName; readonly entry: Entry };

/** With the ServicePort it is for; null: for all, or for a deleted one. */
export type OwnedOperation = Operation & { readonly owner: PortKey | null };

/** What leads from one state to another: first everything that grows, then, once the rules are in place, what shrinks. */
export type IpvsPatch = {
  readonly family: Family;
  readonly grow: readonly OwnedOperation[];
  readonly shrink: readonly OwnedOperation[];
};

/** The complete wanted state of one family. */
export type IpvsPlan = {
  readonly family: Family;
  /** In the order in which entries are added; they are deleted in the reverse order. */
  readonly sets: readonly IpSet[];
  /** Networks whose virtual servers are never deleted, no matter which program made them. */
  readonly excluded: readonly Cidr[];
  readonly fragments: Keyed<Fragment>;
  /** The ServicePorts that need each virtual server, the holder first. */
  readonly servers: Keyed<readonly Claim[]>;
  /** How many Fragments need each address of the link. */
  readonly addresses: Keyed<number>;
  /** How many Fragments need each entry; by `entryKey`. */
  readonly entries: Keyed<number>;
  /** How many entries each set holds: rules about an empty set are left out. */
  readonly sizes: ReadonlyMap<SetName, number>;
  readonly tables: IptablesPlan;
  /** Keys whose Fragment differs from the Plan before. */
  readonly changed: ReadonlySet<PortKey>;
};

export type Claim = { readonly owner: PortKey; readonly server: WantedServer };

export type WantedServer = VirtualServer & {
  readonly kind: "address" | "nodePort";
  /** All with weight 1. */
  readonly destinations: ReadonlyMap<DestinationKey, DestinationId>;
};

/** What one ServicePort adds, besides rules. */
export type Fragment = {
  readonly key: PortKey;
  readonly servers: readonly WantedServer[];
  readonly addresses: readonly Address[];
  readonly entries: readonly { readonly set: SetName; readonly entry: Entry }[];
};
