// Tables of protobuf messages: which fields are kept, under which name, and what type they have.
import type { Shape } from "../objects.ts";
import { wire } from "./reader.ts";
import { SharedValues } from "./shared.ts";

/** A message with the fields that are kept of it. */
export type Message = {
  /** By number; in a map in any order. */
  readonly fields: readonly (Field | undefined)[];
  /** All fields, absent: objects are copies of it, so that the engine sees one shape for all. */
  readonly empty: Decoded;
};

export type Decoded = { [field: string]: unknown };

export type Field = {
  readonly name: string;
  readonly isList: boolean;
  readonly type: "own" | "shared" | "int" | "flag" | "time" | "map" | "message";
  /** The wire type that its values must have. */
  readonly wire: number;
  /** Of a message, or of a map with the keys that are kept. */
  readonly message: Message;
  /** Decoded values by their bytes, for messages that many objects repeat; null: not worth it. */
  readonly shared: SharedValues<Decoded> | null;
};

/** Field numbers for a shape: of text, of another scalar, of a map, or of a message and its fields. A list has those of its items. */
type Numbers<S> = S extends string
  ? number | Scalar
  : S extends readonly [infer Item]
    ? Numbers<Item>
    : { readonly keyed: number } | readonly [number, FieldNumbers<S>, Repeats?];

/** The same bytes occur in many objects: one decoded value is kept for all. */
type Repeats = "repeats";

type Scalar = { readonly int: number } | { readonly flag: number } | { readonly time: number };

type FieldNumbers<S> = { readonly [F in keyof S]: Numbers<S[F]> };

type Shapes = { readonly [field: string]: Shape };

/** The same for any shape. */
type AnyNumbers = number | Scalar | { readonly keyed: number } | readonly [number, AllNumbers, Repeats?];
type AllNumbers = { readonly [field: string]: AnyNumbers };

/** The compiler requires a number for every field of the shape. */
export function messageOf<S>(shape: S, numbers: FieldNumbers<S>): Message {
  return tableOf(shape as Shapes, numbers as AllNumbers);
}

function tableOf(shape: Shapes, numbers: AllNumbers): Message {
  const named = Object.keys(shape).map((name) => fieldOf(name, shape[name]!, numbers[name]!));
  const fields: (Field | undefined)[] = [];
  for (const [number, field] of named) fields[number] = field;
  return {
    // Without holes, which are slow to read.
    fields: Array.from(fields),
    empty: Object.fromEntries(named.map(([, { name }]) => [name, undefined])),
  };
}

function fieldOf(name: string, shape: Shape, numbers: AnyNumbers): [number, Field] {
  const isList = Array.isArray(shape);
  const item = isList ? (shape as readonly [Shape])[0] : shape;
  const text = { name, isList, type: item, wire: wire.bytes, message: nothing, shared: null } as Field;
  if (typeof numbers === "number") return [numbers, text];
  if ("int" in numbers) return [numbers.int, { ...text, type: "int", wire: wire.varint }];
  if ("flag" in numbers) return [numbers.flag, { ...text, type: "flag", wire: wire.varint }];
  if ("time" in numbers) return [numbers.time, { ...text, type: "time" }];
  if ("keyed" in numbers) return [numbers.keyed, { ...text, type: "map", message: mapOf(item as Shapes) }];
  const [number, inner, repeats] = numbers;
  const shared = repeats === undefined ? null : new SharedValues<Decoded>(1 << 12);
  return [number, { ...text, type: "message", message: tableOf(item as Shapes, inner), shared }];
}

/** The order of the keys stands in for their numbers. */
function mapOf(shape: Shapes): Message {
  return tableOf(shape, Object.fromEntries(Object.keys(shape).map((key, i) => [key, i])));
}

const nothing: Message = { fields: [], empty: {} };
