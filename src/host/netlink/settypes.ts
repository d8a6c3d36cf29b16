// The types of sets and maps as `nft` declares them, by `type` or by `typeof`: numbers, lengths and notes for the kernel.
import { type Bytes, hostU32Bytes } from "./bytes.ts";
import type { NfFamily } from "./netfilter.ts";
import { type NftSet, setFlag, verdictDataType } from "./nftables.ts";
import { type ByteOrder, note, setUserdata } from "./userdata.ts";

type Type = { readonly id: number; readonly length: number; readonly order: ByteOrder };

const types = {
  ipv4_addr: { id: 7, length: 4, order: "big" },
  ipv6_addr: { id: 8, length: 16, order: "big" },
  inet_proto: { id: 12, length: 1, order: "none" },
  inet_service: { id: 13, length: 2, order: "big" },
  mark: { id: 19, length: 4, order: "host" },
  ifname: { id: 41, length: 16, order: "host" },
} as const satisfies Record<string, Type>;

const integer: Type = { id: 4, length: 4, order: "host" };
const expressionTag = { verdict: 1, payload: 7, meta: 9, concatenation: 13, numgen: 23 } as const;

// [type, protocol header, field of it], by nft's own numbers
const headerFields = {
  "ip saddr": ["ipv4_addr", 12, 11],
  "ip daddr": ["ipv4_addr", 12, 12],
  "ip6 saddr": ["ipv6_addr", 13, 8],
  "ip6 daddr": ["ipv6_addr", 13, 9],
  "th sport": ["inet_service", 11, 1],
  "th dport": ["inet_service", 11, 2],
  "tcp dport": ["inet_service", 8, 2],
  "udp dport": ["inet_service", 6, 2],
} as const satisfies Record<string, readonly [keyof typeof types, number, number]>;

const metaFields = {
  "meta l4proto": ["inet_proto", 16],
  "meta mark": ["mark", 3],
  "meta iifname": ["ifname", 6],
} as const satisfies Record<string, readonly [keyof typeof types, number]>;

/** A part of a key or value: a type, or an expression whose type it has. One declaration does not mix the two. */
export type Part =
  | keyof typeof types
  | keyof typeof headerFields
  | keyof typeof metaFields
  | `numgen random mod ${number}`;

export type SetDeclaration = {
  readonly family: NfFamily;
  readonly table: string;
  readonly name: string;
  readonly key: readonly Part[];
  /** The value type of a map; absent for a set. */
  readonly data?: readonly Part[] | "verdict";
  /** Holds ranges. */
  readonly interval?: boolean;
  readonly autoMerge?: boolean;
  /** Rules may add elements. */
  readonly dynamic?: boolean;
  /** The default timeout of elements in milliseconds; 0: each element has its own. */
  readonly timeout?: number;
  readonly size?: number;
  readonly comment?: string;
  /** Each element has a counter. */
  readonly counted?: boolean;
};

/** What to send to the kernel so that it holds, and `nft` lists, the declared set. */
export function declareSet(declaration: SetDeclaration): NftSet {
  const { family, table, name, key, data, size, timeout, comment } = declaration;
  const keyTypeof = typeofOf(key);
  return {
    family,
    table,
    name,
    flags: flagsOf(declaration),
    ...numbersOf("key", key),
    ...(data === undefined ? {} : data === "verdict" ? verdictNumbers : numbersOf("data", data)),
    ...descriptionOf(declaration, size),
    ...(timeout === undefined || timeout === 0 ? {} : { timeout }),
    userdata: setUserdata({
      keyOrder: orderOf(key),
      ...(keyTypeof === "" ? {} : { keyTypeof }),
      ...(data === undefined ? {} : { data: dataNotes(data, isTypeof(key)) }),
      ...(declaration.autoMerge ? { autoMerge: true } : {}),
      ...(comment === undefined ? {} : { comment }),
    }),
    ...(declaration.counted ? { expression: { kind: "counter", bytes: 0n, packets: 0n } } : {}),
  };
}

const verdictNumbers = { dataType: verdictDataType, dataLength: 16 };

function flagsOf({ key, data, interval, dynamic, timeout }: SetDeclaration): number {
  return (
    (data === undefined ? 0 : setFlag.map) |
    (interval ? setFlag.interval : 0) |
    (interval && key.length > 1 ? setFlag.concatenated : 0) |
    (dynamic ? setFlag.dynamic : 0) |
    (timeout === undefined ? 0 : setFlag.timeout)
  );
}

function numbersOf<Side extends "key" | "data">(
  side: Side,
  parts: readonly Part[],
): Record<`${Side}Type` | `${Side}Length`, number> {
  const type = parts.reduce((sum, part) => (sum << 6) | typeOf(part).id, 0);
  return { [`${side}Type`]: type, [`${side}Length`]: lengthOf(parts) } as Record<
    `${Side}Type` | `${Side}Length`,
    number
  >;
}

function descriptionOf(
  { key, interval }: SetDeclaration,
  size: number | undefined,
): Pick<NftSet, "description"> {
  const fields =
    interval && key.length > 1 ? key.map((part) => ({ length: typeOf(part).length })) : undefined;
  if (size === undefined && fields === undefined) return {};
  return {
    description: { ...(size === undefined ? {} : { size }), ...(fields === undefined ? {} : { fields }) },
  };
}

function dataNotes(
  data: readonly Part[] | "verdict",
  keyIsTypeof: boolean,
): { order: ByteOrder; typeof?: Bytes } {
  if (data !== "verdict") {
    const declared = typeofOf(data);
    return { order: orderOf(data), ...(declared === "" ? {} : { typeof: declared }) };
  }
  return { order: "none", ...(keyIsTypeof ? { typeof: describe(expressionTag.verdict, "") } : {}) };
}

function typeOf(part: Part): Type {
  if (part in types) return types[part as keyof typeof types];
  if (part in headerFields) return types[headerFields[part as keyof typeof headerFields][0]];
  if (part in metaFields) return types[metaFields[part as keyof typeof metaFields][0]];
  return integer;
}

function lengthOf(parts: readonly Part[]): number {
  if (parts.length === 1) return typeOf(parts[0]!).length;
  return parts.reduce((sum, part) => sum + ((typeOf(part).length + 3) & ~3), 0);
}

function orderOf(parts: readonly Part[]): ByteOrder {
  const [part] = parts;
  if (parts.length !== 1 || part === undefined) return "none";
  return part === "meta l4proto" ? "host" : typeOf(part).order;
}

function isTypeof(parts: readonly Part[]): boolean {
  return parts.some((part) => !(part in types));
}

/** Empty for a single plain type, which needs no description. */
function typeofOf(parts: readonly Part[]): Bytes {
  if (!isTypeof(parts)) return parts.length > 1 ? describe(expressionTag.concatenation, "") : "";
  const described = parts.map(expressionOf);
  if (described.length === 1) return described[0]!;
  return describe(
    expressionTag.concatenation,
    described.map((expression, index) => note(index, expression)).join(""),
  );
}

function expressionOf(part: Part): Bytes {
  if (part in headerFields) {
    const [, header, field] = headerFields[part as keyof typeof headerFields];
    return describe(expressionTag.payload, numbers(header, field));
  }
  if (part in metaFields) {
    return describe(expressionTag.meta, numbers(metaFields[part as keyof typeof metaFields][1]));
  }
  const random = 1;
  return describe(expressionTag.numgen, numbers(random, Number(part.slice(part.lastIndexOf(" "))), 0));
}

function describe(tag: number, data: Bytes): Bytes {
  return note(0, hostU32Bytes(tag)) + note(1, data);
}

function numbers(...values: number[]): Bytes {
  return values.map((value, index) => note(index, hostU32Bytes(value))).join("");
}
