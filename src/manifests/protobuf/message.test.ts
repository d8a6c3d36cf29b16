// The same objects in JSON and in protobuf give the same Snapshots; other bytes give an error and nothing else.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryObject, arbitraryObjects, thisNode } from "../../../test/generators.ts";
import { service, slice } from "../../../test/objects.ts";
import { viewOf } from "../../../test/support/api-rig.ts";
import { encodeMessage, field, varint, varintField } from "../../../test/support/protobuf/encode.ts";
import { tables } from "../../../test/support/protobuf/kinds.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { Cluster } from "../cluster.ts";
import { type Kind, kinds, slim } from "../objects.ts";
import { objectMessages } from "./kinds.ts";
import { readMessage } from "./message.ts";
import { MalformedMessage, Reader } from "./reader.ts";

const encode = (kind: Kind, object: unknown) => encodeMessage(object as object, tables.get(kind)!);
const decode = (kind: Kind, bytes: Buffer) => readMessage(new Reader(bytes), objectMessages[kind]);

/** A message, or "malformed"; nothing else may happen. */
function outcome(kind: Kind, bytes: Buffer): unknown {
  try {
    return decode(kind, bytes);
  } catch (error) {
    if (error instanceof MalformedMessage) return "malformed";
    throw error;
  }
}

const anyObject = fc
  .constantFrom(...kinds)
  .chain((kind) => arbitraryObject(kind, { hostile: false }).map((object) => [kind, object] as const));

/** Fields that no table has: every wire type, and messages within messages. */
const unknownField = fc.oneof(
  fc
    .tuple(fc.integer({ min: 30, max: (1 << 28) - 1 }), fc.integer())
    .map(([n, value]) => varintField(n, value)),
  fc
    .tuple(fc.integer({ min: 30, max: 1000 }), fc.uint8Array())
    .map(([n, bytes]) => field(n, Buffer.from(bytes))),
  fc.constant(Buffer.concat([varint((30 << 3) | 1), Buffer.alloc(8)])),
  fc.constant(Buffer.concat([varint((31 << 3) | 5), Buffer.alloc(4)])),
);

describe("objects in protobuf", { timeout: 300_000 }, () => {
  it("give the same Snapshots as in JSON", () => {
    fc.assert(
      fc.property(arbitraryObjects({ hostile: false }), (objects) => {
        const [plain, decoded] = [new Cluster(thisNode), new Cluster(thisNode)];
        for (const kind of kinds) {
          const all = objects[kind];
          plain.replace(
            kind,
            all.map((object) => slim(kind, object)),
          );
          decoded.replace(
            kind,
            all.map((object) => decode(kind, encode(kind, object))),
          );
        }
        expect(contents(decoded.take())).toEqual(contents(plain.take()));
      }),
      { numRuns: 300 },
    );
  });

  it("are the same with unknown fields between the known ones", () => {
    fc.assert(
      fc.property(anyObject, fc.array(unknownField, { maxLength: 5 }), ([kind, object], unknown) => {
        const bytes = encode(kind, object);
        const around = Buffer.concat([...unknown, bytes, ...unknown]);
        expect(decode(kind, around)).toEqual(decode(kind, bytes));
      }),
    );
  });

  it("merge a message that occurs twice, as in Go", () => {
    const [named, placed] = [service({}, { metadata: { name: "a" } }), { metadata: { namespace: "b" } }];
    const bytes = Buffer.concat([encode("Service", named), encode("Service", placed)]);
    expect(decode("Service", bytes).metadata).toMatchObject({ name: "a", namespace: "b" });
  });

  it("share what many objects repeat, and replace it when it occurs twice", () => {
    const ready = { addresses: ["10.0.0.1"], conditions: { ready: true }, nodeName: "node-a" };
    const decoded = () => decode("EndpointSlice", encode("EndpointSlice", slice([ready])));
    const endpointIn = ({ endpoints }: { endpoints?: unknown }) =>
      (endpoints as { conditions: unknown }[])[0]!;
    const first = endpointIn(decoded());
    const conditions = (flag: number) => field(2, varintField(flag, 0));
    const twice = field(2, Buffer.concat([field(2, varintField(1, 1)), conditions(2)]));
    expect(endpointIn(decode("EndpointSlice", twice)).conditions).toEqual({ serving: false });
    expect(endpointIn(decoded()).conditions).toBe(first.conditions);
    expect(first.conditions).toEqual({ ready: true });
  });

  it("security/1: keep no key of a map but those they use", () => {
    for (const key of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
      const map = (number: number) =>
        field(number, Buffer.concat([field(1, Buffer.from(key)), field(2, Buffer.from("x"))]));
      const { metadata } = decode("EndpointSlice", field(1, Buffer.concat([map(11), map(12)])));
      const { labels, annotations } = metadata as { labels: object; annotations: object };
      for (const kept of [labels, annotations]) {
        expect(Object.getPrototypeOf(kept)).toBe(Object.prototype);
        expect(JSON.stringify(kept)).toBe("{}");
      }
    }
  });

  it("have U+FFFD for invalid UTF-8, as in JSON", () => {
    const bytes = field(1, field(1, Buffer.from([0x61, 0xff, 0xc3, 0xa4])));
    expect(decode("Service", bytes).metadata).toMatchObject({ name: "a\ufffdä" });
  });
});

describe("a value of the wrong wire type", () => {
  it.each([
    ["text as a number", { clusterIP: 7 }, "spec.clusterIP is the number 7, not text"],
    [
      "a number as text",
      { ports: [{ port: "80" }] },
      'spec.ports[0].port is the text "80", not a whole number',
    ],
    [
      "a message as a number",
      { sessionAffinityConfig: 3 },
      "spec.sessionAffinityConfig is the number 3, not an object",
    ],
    [
      "an item of a list as a number",
      { ports: [{ port: 80 }, 7] },
      "spec.ports[1] is the number 7, not an object",
    ],
  ])("is a Problem, and other objects are used: %s", (_, spec, problem) => {
    const cluster = new Cluster(thisNode);
    const good = service({}, { metadata: { name: "good" } });
    for (const object of [service(spec), good])
      cluster.upsert("Service", decode("Service", encode("Service", object)));
    const { problems, ipv4 } = cluster.take();
    expect(problems.map(({ field: at, message }) => `${at} ${message}`)).toEqual([
      `${problem}; the object is ignored`,
    ]);
    expect(ipv4.ports.size).toBe(1);
  });
});

describe("bytes that are not a message", () => {
  const whole = encode("EndpointSlice", slice([{ addresses: ["10.0.0.1"], nodeName: "node-a" }]));

  it("cut at any byte, are malformed or a shorter object", () => {
    for (let end = 0; end < whole.length; end++) outcome("EndpointSlice", whole.subarray(0, end));
    expect(outcome("EndpointSlice", whole.subarray(0, whole.length - 1))).toBe("malformed");
  });

  it("changed at random, are malformed or another object", () => {
    const change = fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }));
    fc.assert(
      fc.property(anyObject, fc.array(change, { minLength: 1, maxLength: 8 }), ([kind, object], changes) => {
        const bytes = encode(kind, object);
        for (const [at, value] of changes) if (bytes.length > 0) bytes[at % bytes.length] = value;
        const decoded = outcome(kind, bytes);
        const cluster = new Cluster(thisNode);
        cluster.upsert(kind, decoded);
        cluster.take();
      }),
      { numRuns: 2000 },
    );
  });

  it("of any content, are read in steps in proportion to their length", () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), fc.uint8Array({ maxLength: 400 }), (kind, content) => {
        const { bytes, reads } = counted(Buffer.from(content));
        outcome(kind, bytes);
        expect(reads()).toBeLessThanOrEqual(6 * content.length + 6);
      }),
      { numRuns: 2000 },
    );
  });

  const deep = (depth: number) => {
    let bytes: Buffer = Buffer.from([0x08, 0x01]);
    for (let i = 0; i < depth; i++) bytes = field(2, bytes);
    return bytes;
  };

  it.each([
    [
      "a tag of more than 32 bits",
      Buffer.from([0x80, 0x80, 0x80, 0x80, 0x10]),
      "a tag or a length has more than 32 bits",
    ],
    [
      "a number of eleven bytes",
      Buffer.from([0xf8, 0x01, ...Array(10).fill(0x80), 0]),
      "a number has more than 10 bytes",
    ],
    [
      "a negative length",
      Buffer.concat([Buffer.from([0x0a]), varint(-1)]),
      "a tag or a length has more than 32 bits",
    ],
    [
      "a length of 2³¹",
      Buffer.concat([Buffer.from([0x0a]), varint(2 ** 31)]),
      "a length exceeds the message",
    ],
    [
      "a message longer than the one around it",
      Buffer.from([0x0a, 0x02, 0x0a, 0x05]),
      "a length exceeds the message",
    ],
    ["a group", Buffer.from([0x0b]), "wire type 3 is not supported"],
    ["field number 0", Buffer.from([0x02, 0x00]), "a field has the number 0"],
    ["half a fixed number", Buffer.from([0x0d, 0x01]), "it ends too early"],
    ["half a varint", Buffer.from([0xf8, 0x01, 0xff]), "it ends too early"],
  ])("are refused: %s", (_, bytes, reason) => {
    expect(() => decode("Service", bytes)).toThrow(reason);
    expect(outcome("Service", bytes)).toBe("malformed");
  });

  it("nested deeply in a field that is not used, are skipped", () => {
    const { bytes, reads } = counted(field(99, deep(1000)));
    expect(outcome("Service", bytes)).toEqual(decode("Service", Buffer.alloc(0)));
    expect(reads()).toBeLessThan(10);
  });

  it("nested deeply in a field that is used, end at the depth of the table", () => {
    expect(outcome("Service", deep(1000))).not.toBe("malformed");
  });

  it("are reported with their field", () => {
    const endpoint = field(1, Buffer.from("10.0.0.1"));
    const bad = field(8, field(1, Buffer.from([0x0a, 0x05])));
    const bytes = Buffer.concat([field(2, endpoint), field(2, Buffer.concat([endpoint, bad]))]);
    const thrown = (() => {
      try {
        return decode("EndpointSlice", bytes);
      } catch (error) {
        return error;
      }
    })();
    expect(thrown).toMatchObject({
      field: "endpoints[1].hints.forZones[0].name",
      message: "a length exceeds the message",
    });
  });
});

function contents(snapshot: Snapshot): unknown {
  const { problems, triggeredAt } = snapshot;
  return { ...(viewOf(snapshot) as object), problems, triggeredAt };
}

/** Bytes that count how often one of them is read. */
function counted(bytes: Buffer): { readonly bytes: Buffer; readonly reads: () => number } {
  let reads = 0;
  const proxy = new Proxy(bytes, {
    get(target, name) {
      if (typeof name === "string" && /^\d+$/.test(name)) reads++;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { bytes: proxy, reads: () => reads };
}
