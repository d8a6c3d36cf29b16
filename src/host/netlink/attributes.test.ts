import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  attributes,
  type Codec,
  choice,
  defaulted,
  field,
  i32be,
  list,
  optional,
  raw,
  text,
  u8,
  u16,
  u16be,
  u32,
  u32be,
  u53be,
  u64be,
} from "./attributes.ts";
import { Writer } from "./writer.ts";

const inner = attributes({ number: field(1, u16be), sign: field(2, choice(["plus", "minus"])) });
const fields = {
  byte: field(1, u8),
  short: field(2, u16),
  int: field(3, u32),
  network: field(4, u32be),
  signed: field(5, i32be),
  long: field(6, u64be),
  handle: field(7, u53be),
  name: field(8, text),
  key: optional(9, raw),
  parts: optional(10, list(1, inner)),
  flags: defaulted(11, u32be, 0),
};
const all = attributes(fields);

const innerValue = fc.record({ number: fc.nat(0xffff), sign: fc.constantFrom("plus", "minus") });
const value = fc.record(
  {
    byte: fc.nat(0xff),
    short: fc.nat(0xffff),
    int: fc.nat(0xffffffff),
    network: fc.nat(0xffffffff),
    signed: fc.integer({ min: -0x80000000, max: 0x7fffffff }),
    long: fc.bigInt({ min: 0n, max: 0xffffffffffffffffn }),
    handle: fc.maxSafeNat(),
    name: fc.string({ unit: "grapheme" }).map((name) => name.replaceAll("\0", "")),
    key: fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
    parts: fc.array(innerValue),
    flags: fc.nat(0xffffffff),
  },
  {
    requiredKeys: ["byte", "short", "int", "network", "signed", "long", "handle", "name", "flags"],
  },
);

describe("attributes", () => {
  it("read what they wrote", () => {
    fc.assert(
      fc.property(value, (given) => {
        expect(again(all, given as never)).toEqual(given);
      }),
    );
  });

  it("fill in what an absent attribute means, and miss what must be there", () => {
    const two = attributes({ a: field(1, u8), b: defaulted(2, u8, 7) });
    expect(again(two, { a: 1 } as never)).toEqual({ a: 1, b: 7 });
    expect(again(two, { b: 1 } as never)).toBeUndefined();
  });

  it("pass over unknown attributes, unless they are to be exact", () => {
    const bytes = written(attributes({ a: field(1, u8), c: field(3, u8) }), { a: 1, c: 2 });
    expect(attributes({ a: field(1, u8) }).read(bytes, 0, bytes.length)).toEqual({ a: 1 });
    expect(attributes({ a: field(1, u8) }, { exact: true }).read(bytes, 0, bytes.length)).toBeUndefined();
  });

  it("never read beyond the end, whatever the bytes are", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const buffer = Buffer.from(bytes);
        expect(() => all.read(buffer, 0, buffer.length)).not.toThrow();
      }),
    );
  });

  it("refuse an attribute that does not fit", () => {
    expect(() => written(attributes({ a: field(1, raw) }), { a: "x".repeat(0x10000) })).toThrow(RangeError);
  });
});

function written<T>(codec: Codec<T>, given: T): Buffer {
  const out = new Writer(1);
  codec.write(out, given);
  return Buffer.from(out.bytes());
}

function again<T>(codec: Codec<T>, given: T): T | undefined {
  const bytes = written(codec, given);
  return codec.read(bytes, 0, bytes.length);
}
