// Netlink attributes as data tables: each protocol lists its fields once, and both directions follow from the list.
import { type Bytes, littleEndian } from "./bytes.ts";
import type { Writer } from "./writer.ts";

/** How one kind of value is written and read. `read` returns undefined for bytes that are not of this kind. */
export type Codec<T> = {
  readonly nested?: boolean;
  write(out: Writer, value: T): void;
  read(from: Buffer, start: number, end: number): T | undefined;
};

export type Field<T, Presence extends "required" | "optional" = "required" | "optional"> = {
  readonly type: number;
  readonly codec: Codec<T>;
  readonly presence: Presence;
  /** What an absent attribute means. */
  readonly absent?: T;
};

export type Fields = Readonly<Record<string, Field<unknown>>>;

type ValueOf<F> = F extends Field<infer T> ? T : never;
type RequiredKeys<F extends Fields> = {
  [K in keyof F]: F[K]["presence"] extends "required" ? K : never;
}[keyof F];

/** The plain object a table of fields describes. */
export type Values<F extends Fields> = {
  readonly [K in RequiredKeys<F>]: ValueOf<F[K]>;
} & {
  readonly [K in Exclude<keyof F, RequiredKeys<F>>]?: ValueOf<F[K]>;
};

/** A field that is always there. */
export function field<T>(type: number, codec: Codec<T>): Field<T, "required"> {
  return { type, codec, presence: "required" };
}

/** A field that may be absent. */
export function optional<T>(type: number, codec: Codec<T>): Field<T, "optional"> {
  return { type, codec, presence: "optional" };
}

/** A field whose absence means `absent`. */
export function defaulted<T>(type: number, codec: Codec<T>, absent: T): Field<T, "required"> {
  return { type, codec, presence: "required", absent };
}

/**
 * A nest of fields. Unknown attributes are passed over, or with `exact` make the whole unreadable, so that what is read
 * can be written again without loss.
 */
export function attributes<F extends Fields>(fields: F, options: { exact?: boolean } = {}): Codec<Values<F>> {
  const entries = Object.entries(fields);
  const byType = new Map(entries.map(([name, { type, codec }]) => [type, { name, codec }]));
  const complete = entries.filter(([, { presence }]) => presence === "required");
  return {
    nested: true,
    write(out, value) {
      const values = value as Record<string, unknown>;
      for (const [name, { type, codec }] of entries) {
        const part = values[name];
        if (part !== undefined) writeAttribute(out, type, codec, part);
      }
    },
    read(from, start, end) {
      const values: Record<string, unknown> = {};
      for (let at = start; at + 4 <= end; at = nextAttribute(from, at)) {
        const found = byType.get(attributeType(from, at));
        if (found === undefined) {
          if (options.exact) return undefined;
          continue;
        }
        const part = found.codec.read(from, at + 4, Math.min(end, attributeEnd(from, at)));
        if (part === undefined) return undefined;
        values[found.name] = part;
      }
      for (const [name, { absent }] of complete) {
        if (values[name] !== undefined) continue;
        if (absent === undefined) return undefined;
        values[name] = absent;
      }
      return values as Values<F>;
    },
  };
}

/** A list: the same attribute again and again. */
export function list<T>(type: number, codec: Codec<T>): Codec<readonly T[]> {
  return {
    nested: true,
    write(out, values) {
      for (const value of values) writeAttribute(out, type, codec, value);
    },
    read(from, start, end) {
      const values: T[] = [];
      for (let at = start; at + 4 <= end; at = nextAttribute(from, at)) {
        const value = codec.read(from, at + 4, Math.min(end, attributeEnd(from, at)));
        if (value === undefined) return undefined;
        values.push(value);
      }
      return values;
    },
  };
}

export function writeAttribute<T>(out: Writer, type: number, codec: Codec<T>, value: T): void {
  const at = codec.nested ? out.nest(type) : out.begin(type);
  codec.write(out, value);
  out.end(at);
}

export function attributeType(from: Buffer, at: number): number {
  return hostU16(from, at + 2) & 0x3fff;
}

/** Where the attribute's value ends. */
export function attributeEnd(from: Buffer, at: number): number {
  return at + Math.max(4, hostU16(from, at));
}

/** Where the attribute after it begins. */
export function nextAttribute(from: Buffer, at: number): number {
  return (attributeEnd(from, at) + 3) & ~3;
}

export function hostU16(from: Buffer, at: number): number {
  return littleEndian ? from.readUInt16LE(at) : from.readUInt16BE(at);
}

export function hostU32(from: Buffer, at: number): number {
  return littleEndian ? from.readUInt32LE(at) : from.readUInt32BE(at);
}

function hostU64(from: Buffer, at: number): bigint {
  return littleEndian ? from.readBigUInt64LE(at) : from.readBigUInt64BE(at);
}

export const u8: Codec<number> = {
  write: (out, value) => out.u8(value),
  read: (from, start, end) => (end - start >= 1 ? from.readUInt8(start) : undefined),
};

/** In the machine's byte order. */
export const u16: Codec<number> = {
  write: (out, value) => out.u16(value),
  read: (from, start, end) => (end - start >= 2 ? hostU16(from, start) : undefined),
};

/** In the machine's byte order. */
export const u32: Codec<number> = {
  write: (out, value) => out.u32(value),
  read: (from, start, end) => (end - start >= 4 ? hostU32(from, start) : undefined),
};

export const u16be: Codec<number> = {
  write: (out, value) => out.u16be(value),
  read: (from, start, end) => (end - start >= 2 ? from.readUInt16BE(start) : undefined),
};

export const u32be: Codec<number> = {
  write: (out, value) => out.u32be(value),
  read: (from, start, end) => (end - start >= 4 ? from.readUInt32BE(start) : undefined),
};

export const i32be: Codec<number> = {
  write: (out, value) => out.u32be(value),
  read: (from, start, end) => (end - start >= 4 ? from.readInt32BE(start) : undefined),
};

export const u64be: Codec<bigint> = {
  write: (out, value) => out.u64be(value),
  read: (from, start, end) => (end - start >= 8 ? from.readBigUInt64BE(start) : undefined),
};

/** In the machine's byte order. */
export const u64: Codec<bigint> = {
  write: (out, value) => out.u64(value),
  read: (from, start, end) => (end - start >= 8 ? hostU64(from, start) : undefined),
};

/** A 64-bit number that stays below 2⁵³: handles, milliseconds. */
export const u53be: Codec<number> = {
  write: (out, value) => out.u64be(BigInt(value)),
  read: (from, start, end) => (end - start >= 8 ? Number(from.readBigUInt64BE(start)) : undefined),
};

export const text: Codec<string> = {
  write: (out, value) => out.text(value),
  read: (from, start, end) => {
    const zero = from.indexOf(0, start);
    return from.toString("utf8", start, zero < 0 || zero > end ? end : zero);
  },
};

export const raw: Codec<Bytes> = {
  write: (out, value) => out.raw(value),
  read: (from, start, end) => from.toString("latin1", start, end),
};

/** A number with names, counted from `first`; any other number is unreadable. */
export function choice<const Names extends readonly string[]>(
  names: Names,
  codec: Codec<number> = u32be,
  first = 0,
): Codec<Names[number]> {
  return {
    write: (out, value) => codec.write(out, names.indexOf(value) + first),
    read: (from, start, end) => names[(codec.read(from, start, end) ?? -1) - first],
  };
}
