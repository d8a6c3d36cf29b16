// What nf_tables holds, as tables of fields: tables, chains, rules, sets, counters, and the generation of the whole.
import {
  attributes,
  type Codec,
  choice,
  defaulted,
  type Fields,
  field,
  i32be,
  list,
  optional,
  raw,
  text,
  u32be,
  u53be,
  u64be,
  type Values,
} from "./attributes.ts";
import { expression, expressions } from "./expressions.ts";
import type { Message } from "./message.ts";
import { familyAt, type NfFamily, netfilterHeaderLength, subsystem } from "./netfilter.ts";

export const tableFlag = { dormant: 1, owner: 2, persist: 4 } as const;

export const setFlag = {
  anonymous: 0x1,
  constant: 0x2,
  interval: 0x4,
  map: 0x8,
  timeout: 0x10,
  dynamic: 0x20,
  object: 0x40,
  concatenated: 0x80,
} as const;

/** The data type of a map whose values are verdicts. */
export const verdictDataType = 0xffffff00;

export const counterObject = 1;

const hook = attributes({
  hook: field(1, choice(["prerouting", "input", "forward", "output", "postrouting", "ingress"])),
  priority: field(2, i32be),
  device: optional(3, text),
});

const setDescription = attributes({
  size: optional(1, u32be),
  /** Bytes of each part of a concatenated key; the kernel needs them for ranges. */
  fields: optional(2, list(1, attributes({ length: field(1, u32be) }))),
});

const tableFields = {
  name: field(1, text),
  flags: defaulted(2, u32be, 0),
  handle: optional(4, u53be),
  userdata: optional(6, raw),
  /** Port id of the socket that owns it. */
  owner: optional(7, u32be),
};

const chainFields = {
  table: field(1, text),
  handle: optional(2, u53be),
  name: field(3, text),
  /** Base chains only. */
  hook: optional(4, hook),
  policy: optional(5, choice(["drop", "accept"])),
  type: optional(7, text),
  userdata: optional(12, raw),
};

const ruleFields = {
  table: field(1, text),
  chain: field(2, text),
  handle: optional(3, u53be),
  expressions: defaulted(4, expressions, []),
  /** Handle of the rule before or after which to put it; when read, the rule before it. */
  position: optional(6, u53be),
  userdata: optional(7, raw),
};

const setFields = {
  table: field(1, text),
  name: field(2, text),
  flags: defaulted(3, u32be, 0),
  keyType: defaulted(4, u32be, 0),
  keyLength: field(5, u32be),
  dataType: optional(6, u32be),
  dataLength: optional(7, u32be),
  policy: optional(8, u32be),
  description: optional(9, setDescription),
  /** Names the set within one transaction; given by `encode` when absent. */
  id: optional(10, u32be),
  /** In milliseconds. */
  timeout: optional(11, u53be),
  gcInterval: optional(12, u32be),
  userdata: optional(13, raw),
  objectType: optional(15, u32be),
  handle: optional(16, u53be),
  /** What each element has besides its key, such as a counter. */
  expression: optional(17, expression),
};

const counter = attributes({ bytes: defaulted(1, u64be, 0n), packets: defaulted(2, u64be, 0n) });

const counterFields = {
  table: field(1, text),
  name: field(2, text),
  type: defaulted(3, u32be, counterObject),
  counter: defaulted(4, counter, { bytes: 0n, packets: 0n }),
  handle: optional(6, u53be),
  userdata: optional(8, raw),
};

const generationFields = {
  id: field(1, u32be),
  /** The program that created it. */
  pid: defaulted(2, u32be, 0),
  process: defaulted(3, text, ""),
};

type Of<F extends Fields> = { readonly family: NfFamily } & { readonly [K in keyof Values<F>]: Values<F>[K] };

export type Table = Of<typeof tableFields>;
export type Chain = Of<typeof chainFields>;
export type Rule = Of<typeof ruleFields>;
export type NftSet = Of<typeof setFields>;
export type Counter = Of<typeof counterFields>;
export type Generation = Values<typeof generationFields>;

export const codecs = {
  table: attributes(tableFields),
  chain: attributes(chainFields),
  rule: attributes(ruleFields),
  set: attributes(setFields),
  counter: attributes(counterFields),
  generation: attributes(generationFields),
  /** Where elements are: their list is read and written by `elements.ts`. */
  elements: attributes({ table: field(1, text), set: field(2, text), setId: optional(4, u32be) }),
};

export const elementListAttribute = 3;

const verbs = [
  ...([
    "newTable",
    "getTable",
    "delTable",
    "newChain",
    "getChain",
    "delChain",
    "newRule",
    "getRule",
  ] as const),
  ...(["delRule", "newSet", "getSet", "delSet", "newElements", "getElements", "delElements"] as const),
  ...(["newGeneration", "getGeneration", "trace", "newObject", "getObject", "delObject"] as const),
] as const;

export type Verb = (typeof verbs)[number];

export function verbType(verb: Verb): number {
  return (subsystem.nftables << 8) | verbs.indexOf(verb);
}

/** What a received message is about; undefined when it is none of ours. */
export function verbOf(type: number): Verb | undefined {
  return type >> 8 === subsystem.nftables ? verbs[type & 0xff] : undefined;
}

/** Reads an object together with its family; undefined when the message does not hold one. */
export function readObject<T>(
  codec: Codec<T>,
  from: Buffer,
  message: Message,
): (T & { readonly family: NfFamily }) | undefined {
  const family = familyAt(from, message.start);
  const object = codec.read(from, message.start + netfilterHeaderLength, message.end);
  return object === undefined || family === undefined ? undefined : Object.assign({ family }, object);
}
