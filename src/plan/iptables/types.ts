// Packet-filter tables as data: rules, chains, and the Plan of this proxy's part of them.
import type { Address, Family } from "../../model/address.ts";
import type { Keyed } from "../../model/keyed.ts";
import type { PortKey, Protocol } from "../../model/snapshot.ts";

export type TableName = "filter" | "nat" | "mangle";

/** In the order in which they are written: a reject rule is in place before nat stops forwarding. */
export const tableNames: readonly TableName[] = ["filter", "nat", "mangle"];

export type ChainName = string;

/** A network, `10.0.0.0/8`, or a single address, `10.0.0.1`. */
export type Place = string;

/** One condition of a Rule. The order of conditions is that of kube-proxy's input. */
export type Match =
  | { readonly kind: "comment"; readonly text: string }
  | { readonly kind: "protocol"; readonly protocol: Protocol }
  /** The same without the protocol's own module, for rules that match a set instead of a port. */
  | { readonly kind: "bareProtocol"; readonly protocol: Protocol }
  | { readonly kind: "source"; readonly cidr: Place; readonly not: boolean }
  | { readonly kind: "destination"; readonly cidr: Place; readonly not: boolean }
  /** A trailing `+` matches every interface whose name starts so. */
  | { readonly kind: "inInterface"; readonly name: string; readonly not: boolean }
  | { readonly kind: "destinationPort"; readonly port: number }
  | { readonly kind: "mark"; readonly mark: number; readonly not: boolean }
  | { readonly kind: "ctstate"; readonly states: string; readonly not: boolean }
  /** The older spelling of `ctstate`, which old rules use. */
  | { readonly kind: "state"; readonly states: string }
  /** The packet did not come in through a port of a bridge. */
  | { readonly kind: "notBridged" }
  /** The address is one of this node's own. */
  | { readonly kind: "localAddress"; readonly side: "src" | "dst"; readonly not: boolean }
  /** Addresses and ports of the packet, taken from these sides (`dst,dst,src`), are an entry of an IP set. */
  | { readonly kind: "set"; readonly name: string; readonly sides: string }
  /** The packet belongs to a connection through this virtual server. */
  | {
      readonly kind: "ipvs";
      readonly address: Address;
      readonly protocol: Protocol;
      readonly port: number;
    }
  /** Matches one packet in `oneIn`. */
  | { readonly kind: "random"; readonly oneIn: number }
  | { readonly kind: "recentlySeen"; readonly list: string; readonly seconds: number }
  | { readonly kind: "remember"; readonly list: string }
  | { readonly kind: "counter"; readonly name: string };

export type Target =
  | { readonly kind: "jump"; readonly chain: ChainName }
  | { readonly kind: "accept" }
  | { readonly kind: "drop" }
  | { readonly kind: "reject" }
  | { readonly kind: "return" }
  | { readonly kind: "setMark"; readonly mark: number }
  | { readonly kind: "flipMark"; readonly mark: number }
  /** `randomPorts`: so that flows of many clients rarely get the same source port. */
  | { readonly kind: "masquerade"; readonly randomPorts: boolean }
  | { readonly kind: "dnat"; readonly address: Address; readonly port: number }
  /** To a port of the node itself, at the address of the interface it came in through. */
  | { readonly kind: "redirect"; readonly port: number }
  /** A rule that only counts, and carries a comment. */
  | { readonly kind: "none" };

export type Rule = { readonly match: readonly Match[]; readonly target: Target };

/** A chain and everything in it. */
export type Chain = { readonly table: TableName; readonly name: ChainName; readonly rules: readonly Rule[] };

/** One rule in a chain that holds other rules too. */
export type PlacedRule = { readonly table: TableName; readonly chain: ChainName; readonly rule: Rule };

/** The complete wanted state of one family's tables. */
export type IptablesPlan = {
  readonly family: Family;
  readonly foundation: Foundation;
  readonly fragments: Keyed<Fragment>;
  readonly totals: Totals;
  /** Keys whose Fragment differs from the Plan before. */
  readonly changed: ReadonlySet<PortKey>;
};

/** What does not depend on any Service. */
export type Foundation = {
  /** Jumps from built-in chains, each put on top when it is missing, in this order. */
  readonly jumps: readonly PlacedRule[];
  /** Jumps put at the end of built-in chains when they are missing. */
  readonly lastJumps?: readonly PlacedRule[];
  /** Chains that must exist, whatever they hold. */
  readonly present: readonly { readonly table: TableName; readonly name: ChainName }[];
  /** Chains with fixed content. */
  readonly fixed: readonly Chain[];
  /** Rules of `jumps` and `fixed` whose loss is a security risk: checked every `syncPeriod`. */
  readonly guards?: readonly PlacedRule[];
  /** Chains that every Fragment may add rules to; `rules` come after all of them. */
  readonly shared: readonly Chain[];
};

/** What one ServicePort adds. */
export type Fragment = {
  readonly key: PortKey;
  /** Rules in shared chains. Rules of one Fragment keep their order; Fragments are in any order. */
  readonly placed: readonly PlacedRule[];
  /** Its own chains. */
  readonly chains: readonly Chain[];
  readonly totals: Totals;
};

/** Sums over Fragments, kept up to date with each change. */
export type Totals = {
  readonly filterRules: number;
  readonly natRules: number;
  /** Endpoints known, ready or not: above a threshold kube-proxy writes fewer comments. */
  readonly endpoints: number;
};

/** What leads from one state of the tables to another. */
export type IptablesPatch = { readonly family: Family; readonly steps: readonly Step[] };

/** Changes of one table that take effect together. */
export type Step = {
  readonly table: TableName;
  /** Chains to create, or to empty, and then to fill. */
  readonly write: readonly Owned<Chain>[];
  /** Rules to delete from chains that contain others too. */
  readonly remove: readonly Owned<PlacedRule>[];
  /** Rules to put on top of such chains, one after the other: the last ends up first. */
  readonly prepend: readonly Owned<PlacedRule>[];
  /** Rules to put at the end of such chains. */
  readonly append: readonly Owned<PlacedRule>[];
  /** Chains that nothing refers to any more once the rest is done. */
  readonly doom: readonly ChainName[];
};

/** With the ServicePort it is for; null: for all. */
export type Owned<T> = T & { readonly owner: PortKey | null };

/** Rules of a mode at work that the clean-up of another one must leave, although it has chains of the same names. */
export type RuleSelection = {
  readonly jumps: readonly PlacedRule[];
  readonly chains: Readonly<Record<TableName, readonly ChainName[]>>;
};

/** What a host holds: for each table and chain, its rules as `iptables-save` prints them, without `-A chain`. */
export type HostTables = {
  readonly family: Family;
  readonly tables: ReadonlyMap<TableName, ReadonlyMap<ChainName, readonly string[]>>;
};

/** The last one is of kube-proxy up to v1.23. */
const servicePrefixes = ["KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-", "KUBE-FW-", "KUBE-EXT-", "KUBE-XLB-"];

/** Whether a nat chain belongs to some Service or Endpoint, of this or of an earlier run. */
export function isServiceChain(name: ChainName): boolean {
  return servicePrefixes.some((prefix) => name.startsWith(prefix));
}
