import { describe, expect, it } from "vitest";
import { type Expr, expressions, natFlag } from "./expressions.ts";
import { Writer } from "./writer.ts";

const rule: readonly Expr[] = [
  { kind: "meta", register: 0, key: "l4proto" },
  { kind: "cmp", register: 0, op: "==", value: "\x06" },
  { kind: "payload", register: 5, base: "network", offset: 16, length: 4 },
  {
    kind: "bitwise",
    source: 0,
    register: 4,
    length: 4,
    mask: "\xff\xff\0\0",
    xor: "\0\0\0\0",
    op: "mask-xor",
  },
  { kind: "lookup", set: "services", source: 8, register: -1, flags: 0 },
  { kind: "setMeta", key: "mark", source: 15 },
  { kind: "verdict", verdict: { kind: "goto", chain: "elsewhere" } },
  { kind: "verdict", verdict: { kind: "return" } },
  { kind: "immediate", register: 0, value: "\0\x50" },
  {
    kind: "nat",
    type: "dnat",
    family: "ip6",
    addressMin: 0,
    addressMax: 0,
    portMin: 4,
    portMax: 4,
    flags: natFlag.addresses | natFlag.ports,
  },
  { kind: "masq", flags: natFlag.fullyRandom },
  { kind: "reject", type: "icmpx", code: 1 },
  { kind: "counter", bytes: 1n << 60n, packets: 3n },
  { kind: "unknown", name: "future", data: "\x08\0\x01\0abcd" },
];

describe("expressions", () => {
  it("read what they wrote", () => {
    expect(again(rule)).toEqual(rule);
  });

  it("keep an instruction with an unknown field as it is", () => {
    const out = new Writer();
    const item = out.nest(1);
    const name = out.begin(1);
    out.text("meta");
    out.end(name);
    const data = out.nest(2);
    for (const type of [1, 2, 99]) {
      const at = out.begin(type);
      out.u32be(3);
      out.end(at);
    }
    out.end(data);
    out.end(item);
    const bytes = Buffer.from(out.bytes());
    const read = expressions.read(bytes, 0, bytes.length)!;
    expect(read).toMatchObject([{ kind: "unknown", name: "meta" }]);
    const rewritten = new Writer();
    expressions.write(rewritten, read);
    expect(Buffer.from(rewritten.bytes())).toEqual(bytes);
  });
});

function again(given: readonly Expr[]): readonly Expr[] | undefined {
  const out = new Writer(1);
  expressions.write(out, given);
  const bytes = Buffer.from(out.bytes());
  return expressions.read(bytes, 0, bytes.length);
}
