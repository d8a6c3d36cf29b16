// The instructions of an nf_tables rule, as data: one line for each field, used for reading and writing.
import {
  attributes,
  type Codec,
  choice,
  defaulted,
  type Fields,
  field,
  list,
  optional,
  raw,
  text,
  u8,
  u32be,
  u53be,
  u64be,
  type Values,
  writeAttribute,
} from "./attributes.ts";
import type { Bytes } from "./bytes.ts";
import { bytes, datum, register, type Verdict, verdictRegister } from "./datum.ts";
import { nfFamily } from "./netfilter.ts";

const metaKey = choice([
  ...([
    "len",
    "protocol",
    "priority",
    "mark",
    "iif",
    "oif",
    "iifname",
    "oifname",
    "iiftype",
    "oiftype",
  ] as const),
  ...(["skuid", "skgid", "nftrace", "rtclassid", "secmark", "nfproto", "l4proto", "bri-iifname"] as const),
  ...(["bri-oifname", "pkttype", "cpu", "iifgroup", "oifgroup", "cgroup", "random", "secpath"] as const),
  ...(["iifkind", "oifkind", "bri-iifpvid", "bri-iifvproto", "time", "day", "hour"] as const),
]);

const ctKey = choice([
  ...(["state", "direction", "status", "mark", "secmark", "expiration", "helper", "l3proto", "src"] as const),
  ...(["dst", "protocol", "proto-src", "proto-dst", "labels", "packets", "bytes", "avgpkt", "zone"] as const),
  ...(["eventmask", "src-ip", "dst-ip", "src-ip6", "dst-ip6", "id"] as const),
]);

const comparison = choice(["==", "!=", "<", "<=", ">", ">="]);
const payloadBase = choice(["link", "network", "transport", "inner"]);
const fibResult = choice(["oif", "oifname", "type"], u32be, 1);

export const natFlag = { addresses: 1, ports: 2, random: 4, persistent: 8, fullyRandom: 16 } as const;
export const fibFlag = { source: 1, destination: 2, mark: 4, iif: 8, oif: 16, present: 32 } as const;

const loaded = attributes({ register: field(1, register), datum: field(2, datum) });

const verdictLoad: Codec<{ readonly verdict: Verdict }> = {
  nested: true,
  write: (out, { verdict }) => loaded.write(out, { register: verdictRegister, datum: verdict }),
  read: (from, start, end) => {
    const verdict = loaded.read(from, start, end)?.datum;
    return typeof verdict === "object" ? { verdict } : undefined;
  },
};

// Two kinds may share a kernel name: the first whose fields fit is meant.
const kinds = {
  payload: of("payload", {
    register: field(1, register),
    base: field(2, payloadBase),
    offset: field(3, u32be),
    length: field(4, u32be),
  }),
  meta: of("meta", { register: field(1, register), key: field(2, metaKey) }),
  setMeta: of("meta", { key: field(2, metaKey), source: field(3, register) }),
  ct: of("ct", { register: field(1, register), key: field(2, ctKey), direction: optional(3, u8) }),
  fib: of("fib", { register: field(1, register), result: field(2, fibResult), flags: field(3, u32be) }),
  numgen: of("numgen", {
    register: field(1, register),
    modulus: field(2, u32be),
    type: field(3, choice(["incremental", "random"])),
    offset: defaulted(4, u32be, 0),
  }),
  hash: of("hash", {
    source: field(1, register),
    register: field(2, register),
    length: field(3, u32be),
    modulus: field(4, u32be),
    seed: optional(5, u32be),
    offset: defaulted(6, u32be, 0),
    type: defaulted(7, u32be, 0),
  }),
  cmp: of("cmp", { register: field(1, register), op: field(2, comparison), value: field(3, bytes) }),
  range: of("range", {
    register: field(1, register),
    op: field(2, choice(["==", "!="])),
    from: field(3, bytes),
    to: field(4, bytes),
  }),
  bitwise: of("bitwise", {
    source: field(1, register),
    register: field(2, register),
    length: field(3, u32be),
    mask: field(4, bytes),
    xor: field(5, bytes),
    op: defaulted(6, choice(["mask-xor"]), "mask-xor"),
  }),
  byteorder: of("byteorder", {
    source: field(1, register),
    register: field(2, register),
    op: field(3, choice(["ntoh", "hton"])),
    length: field(4, u32be),
    size: field(5, u32be),
  }),
  immediate: of("immediate", { register: field(1, register), value: field(2, bytes) }),
  verdict: { name: "immediate", codec: verdictLoad },
  lookup: of("lookup", {
    set: field(1, text),
    source: field(2, register),
    /** Where a map's value goes: a register, or the verdict register for a verdict map. */
    register: optional(3, register),
    setId: optional(4, u32be),
    flags: defaulted(5, u32be, 0),
  }),
  dynset: of("dynset", {
    set: field(1, text),
    setId: optional(2, u32be),
    op: field(3, choice(["add", "update", "delete"])),
    key: field(4, register),
    data: optional(5, register),
    /** In milliseconds; 0 is the set's own. */
    timeout: defaulted(6, u53be, 0),
    flags: defaulted(9, u32be, 0),
  }),
  nat: of("nat", {
    type: field(1, choice(["snat", "dnat"])),
    family: field(2, nfFamily),
    addressMin: optional(3, register),
    addressMax: optional(4, register),
    portMin: optional(5, register),
    portMax: optional(6, register),
    flags: defaulted(7, u32be, 0),
  }),
  masq: of("masq", {
    flags: defaulted(1, u32be, 0),
    portMin: optional(2, register),
    portMax: optional(3, register),
  }),
  redir: of("redir", {
    portMin: optional(1, register),
    portMax: optional(2, register),
    flags: defaulted(3, u32be, 0),
  }),
  reject: of("reject", { type: field(1, choice(["icmp", "tcp-reset", "icmpx"])), code: optional(2, u8) }),
  counter: of("counter", { bytes: defaulted(1, u64be, 0n), packets: defaulted(2, u64be, 0n) }),
  objref: of("objref", { type: field(1, u32be), name: field(2, text) }),
  objrefMap: of("objref", { source: field(3, register), set: field(4, text), setId: optional(5, u32be) }),
  notrack: of("notrack", {}),
};

type Kinds = typeof kinds;
type KnownExpr = {
  [K in keyof Kinds]: { readonly kind: K } & Flat<Kinds[K]["codec"] extends Codec<infer V> ? V : never>;
}[keyof Kinds];
type Flat<T> = { readonly [K in keyof T]: T[K] };

/** Any instruction that is not in the table, kept as it is. */
export type UnknownExpr = { readonly kind: "unknown"; readonly name: string; readonly data: Bytes };

export type Expr = KnownExpr | UnknownExpr;

function of<const F extends Fields>(name: string, fields: F): { name: string; codec: Codec<Values<F>> } {
  return { name, codec: attributes(fields, { exact: true }) };
}

const kindsByName = new Map<string, [Expr["kind"], Codec<unknown>][]>();
for (const [kind, { name, codec }] of Object.entries(kinds)) {
  const siblings = kindsByName.get(name) ?? [];
  kindsByName.set(name, [...siblings, [kind as Expr["kind"], codec]]);
}

export const expression: Codec<Expr> = {
  nested: true,
  write(out, value) {
    if (value.kind === "unknown") {
      writeAttribute(out, 1, text, value.name);
      writeAttribute(out, 2, nestedRaw, value.data);
    } else {
      const { name, codec } = kinds[value.kind];
      writeAttribute(out, 1, text, name);
      writeAttribute(out, 2, codec as Codec<unknown>, value);
    }
  },
  read(from, start, end) {
    const found = envelope.read(from, start, end);
    if (found === undefined) return undefined;
    const { name, data = { start: end, end } } = found;
    for (const [kind, codec] of kindsByName.get(name) ?? []) {
      const values = codec.read(from, data.start, data.end);
      if (values !== undefined) return Object.assign({ kind }, values) as Expr;
    }
    return { kind: "unknown", name, data: from.toString("latin1", data.start, data.end) };
  },
};

export const expressions: Codec<readonly Expr[]> = list(1, expression);

const nestedRaw: Codec<Bytes> = { ...raw, nested: true };

const bounds: Codec<{ start: number; end: number }> = {
  write: () => undefined,
  read: (_, start, end) => ({ start, end }),
};

const envelope = attributes({ name: field(1, text), data: optional(2, bounds) });
