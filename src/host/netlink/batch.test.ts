import { describe, expect, it } from "vitest";
import { attributeEnd, attributeType, hostU16, nextAttribute } from "./attributes.ts";
import { encode, type Operation } from "./batch.ts";
import { u32Bytes } from "./bytes.ts";
import { messagesIn } from "./message.ts";

const to = { family: "ip", table: "t", set: "s" } as const;
const many = (count: number): Operation => ({
  kind: "addElements",
  to,
  elements: Array.from({ length: count }, (_, i) => ({ key: u32Bytes(i) })),
});

describe("a batch", () => {
  it("numbers its messages, is enclosed by two markers, and requests one acknowledgement", () => {
    const { bytes } = encode([
      { kind: "addTable", table: { family: "ip", name: "t", flags: 0 } },
      { kind: "deleteTable", table: { family: "ip", name: "t" } },
    ]);
    const buffer = Buffer.from(bytes);
    const messages = [...messagesIn(buffer, buffer.length)];
    expect(messages.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
    expect(messages.map(({ type }) => type)).toEqual([0x10, 0xa00, 0xa02, 0x11]);
    expect(messages.map(({ flags }) => flags)).toEqual([1, 0x401, 5, 1]);
  });

  it("is the same for the same operations", () => {
    expect(encode([many(100)], { generation: 3 })).toEqual(encode([many(100)], { generation: 3 }));
  });

  it("splits elements over messages whose lists fit an attribute, and records where each begins", () => {
    const { bytes, parts } = encode([many(10_000)]);
    const buffer = Buffer.from(bytes);
    const counts = parts.map(({ at }) => elementsIn(buffer, at));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(10_000);
    expect(parts.length).toBe(3);
    expect(parts.map(({ firstElement }) => firstElement)).toEqual(
      counts.map((_, i) => counts.slice(0, i).reduce((sum, count) => sum + count, 0)),
    );
  });

  it("has no message for an empty list of elements", () => {
    expect(encode([many(0)]).parts).toEqual([]);
  });
});

function elementsIn(buffer: Buffer, message: number): number {
  const end = message + buffer.readUInt32LE(message);
  let count = 0;
  for (let at = message + 20; at < end; at = nextAttribute(buffer, at)) {
    expect(hostU16(buffer, at)).toBeGreaterThanOrEqual(4);
    if (attributeType(buffer, at) !== 3) continue;
    for (let item = at + 4; item < attributeEnd(buffer, at); item = nextAttribute(buffer, item)) count++;
  }
  return count;
}
