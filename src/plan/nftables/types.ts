// An nf_tables table as plain data: sets, chains, rules and elements, as the nftables mode needs them.
import type { Address, Cidr, Family } from "../../model/address.ts";
import type { Keyed } from "../../model/keyed.ts";
import type { PortKey, Protocol } from "../../model/snapshot.ts";
import type { ElementKey } from "./key.ts";

export type NftFamily = "ip" | "ip6";

export function nftFamilyOf(family: Family): NftFamily {
  return family === "ipv4" ? "ip" : "ip6";
}

/** What one part of a set's key, or of a map's data, holds. `slot` numbers the Endpoints of a Frontend from 0. */
export type Part = "address" | "protocol" | "port" | "slot";

/** A named set or map. */
export type NftSet = {
  readonly name: string;
  readonly key: readonly Part[];
  /** null: a set. A map's data are parts, or a verdict. */
  readonly data: readonly Part[] | "verdict" | null;
  /** Elements are networks; the key has one part, an address. */
  readonly interval: boolean;
  /** Filled by packets; elements expire after this many seconds. */
  readonly timeout: number | null;
  readonly comment: string | null;
  /** Each element counts the packets that it matches; what it has counted is no part of the Plan. */
  readonly counted?: true;
};

/** Fields of a packet that make up a key. */
export type Field = "saddr" | "daddr" | "l4proto" | "dport";

export type Statement =
  | { readonly kind: "ct state new" }
  | { readonly kind: "ct status dnat" }
  | { readonly kind: "ct status ! confirmed" }
  | {
      readonly kind: "address";
      readonly field: "saddr" | "daddr";
      readonly not: boolean;
      readonly network: Cidr;
    }
  | { readonly kind: "iifname"; readonly not: boolean; readonly name: string; readonly prefix: boolean }
  | { readonly kind: "fib local"; readonly field: "saddr" | "daddr" }
  | { readonly kind: "in set"; readonly fields: readonly Field[]; readonly set: string }
  | { readonly kind: "vmap"; readonly fields: readonly Field[]; readonly map: string }
  | { readonly kind: "marked"; readonly mark: number }
  | { readonly kind: "set mark"; readonly how: "or" | "xor"; readonly mark: number }
  | { readonly kind: "dnat"; readonly protocol: Protocol; readonly address: Address; readonly port: number }
  | {
      readonly kind: "dnat by slot";
      readonly protocol: Protocol;
      readonly fields: readonly Field[];
      readonly slots: number;
      readonly map: string;
    }
  | { readonly kind: "goto by slot"; readonly chains: readonly string[] }
  | { readonly kind: "remember sender"; readonly set: string }
  | { readonly kind: "masquerade" }
  | { readonly kind: "return" }
  | { readonly kind: "count"; readonly counter: string }
  | { readonly kind: "jump"; readonly chain: string }
  | { readonly kind: "goto"; readonly chain: string }
  | { readonly kind: "drop" }
  | { readonly kind: "reject" };

export type Rule = { readonly statements: readonly Statement[]; readonly comment: string | null };

/** Where a base chain is hooked; null for a chain that is only jumped to. */
export type Hook = {
  readonly type: "filter" | "nat";
  readonly hook: "prerouting" | "input" | "forward" | "output" | "postrouting";
  readonly priority: number;
};

export type Chain = {
  readonly name: string;
  readonly hook: Hook | null;
  readonly rules: readonly Rule[];
  readonly comment: string | null;
};

/** What a verdict map decides. `continue` and `break` are never wanted, but a kernel may hold them. */
export type Verdict =
  | { readonly kind: "accept" | "drop" | "return" | "continue" | "break" }
  | { readonly kind: "jump" | "goto"; readonly chain: string };

/** One element; `data` is the verdict of a verdict map. */
export type Element = {
  readonly key: ElementKey;
  readonly data: Verdict | null;
  readonly comment: string | null;
};

/** An address and port to send to. */
export type Backend = { readonly address: Address; readonly port: number };

/** All slots of one key of a slot map: slot i holds backends[i]. Which Backend has which slot does not matter. */
export type BackendSlots = { readonly key: ElementKey; readonly backends: readonly (Backend | undefined)[] };

/** One complete table, current or wanted. */
export type NftTable = {
  readonly family: NftFamily;
  readonly sets: ReadonlyMap<string, NftSet>;
  readonly counters: ReadonlySet<string>;
  readonly chains: ReadonlyMap<string, Chain>;
  /** By set name, then by key. */
  readonly elements: ReadonlyMap<string, ReadonlyMap<ElementKey, Element>>;
  /** By the name of the slot map, then by key. */
  readonly spreads: ReadonlyMap<string, ReadonlyMap<ElementKey, BackendSlots>>;
};

/** Receives which element of a set, or which slot of a slot map, a result depends on, whether it exists or not. */
export type OnLookup = (set: string, key: ElementKey, slot: number | null) => void;

/** A session affinity entry of a ServicePort in a set that packets fill, and its remaining time. */
export type Client = { readonly address: Address; readonly milliseconds: number };

/** A table as it was found on a host, with what counts only when it is replaced as a whole. */
export type FoundTable = {
  readonly table: NftTable;
  /** The owner: none, this process, another running process, or one that has exited. */
  readonly ownership: "plain" | "ours" | "theirs" | "orphan";
  /** By the name of their set. */
  readonly remembered: ReadonlyMap<string, readonly Client[]>;
};

/** A set and all its elements. */
export type FilledSet = { readonly set: NftSet; readonly elements: ReadonlyMap<ElementKey, Element> };

/** What one ServicePort contributes. */
export type Fragment = {
  /** Chains that several ServicePorts use; equal names mean equal chains. */
  readonly shared: readonly Chain[];
  /** Sets that several ServicePorts use; equal names mean equal elements. */
  readonly filled: readonly FilledSet[];
  readonly chains: readonly Chain[];
  readonly sets: readonly NftSet[];
  readonly elements: readonly (Element & { readonly set: string })[];
  readonly spreads: readonly (BackendSlots & { readonly map: string })[];
  /** Counters of its own chains; absent: none. */
  readonly counters?: readonly string[];
};

/** What does not depend on Services: changes only with settings, node addresses and ServiceCIDRs. */
export type Foundation = {
  readonly family: NftFamily;
  readonly sets: readonly NftSet[];
  readonly counters: readonly string[];
  readonly chains: readonly Chain[];
  readonly elements: readonly (Element & { readonly set: string })[];
};

/** The complete table a Mode requires, kept so that one changed ServicePort costs one Fragment. */
export type NftPlan = {
  readonly foundation: Foundation;
  readonly fragments: Keyed<Fragment>;
  /** How many Fragments use each shared chain, filled set and element, by kind (`chain`, `filled set`, or the set of the element) and name. */
  readonly uses: Keyed<Keyed<number>>;
  /** Keys whose Fragment differs from the Plan before. */
  readonly changed: ReadonlySet<PortKey>;
};

/** The size of a set that packets fill; nft's default. */
export const dynamicSetSize = 65535;

export const tableName = "kube-proxy";
export const tableComment = "rules for kube-proxy";

/** A slot map's key ends in the slot; such maps contain BackendSlots, all others Elements. */
export function isSlotMap(set: NftSet): boolean {
  return set.key.at(-1) === "slot";
}
