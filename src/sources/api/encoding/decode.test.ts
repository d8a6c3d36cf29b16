// Frames, envelopes, lists, events and Status in protobuf, whole and damaged.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { service, slice } from "../../../../test/support/api-rig.ts";
import {
  encodeEvent,
  encodeMessage,
  encodeObject,
  envelope,
  field,
  frame,
} from "../../../../test/support/protobuf/encode.ts";
import { tables } from "../../../../test/support/protobuf/kinds.ts";
import { MalformedMessage } from "../../../manifests/protobuf/reader.ts";
import { decodeEvent, decodeList, decodeStatus } from "./decode.ts";
import { frameSplitter } from "./frames.ts";

/** An event without the length before it. */
const event = (type: string, object: object) => encodeEvent(type, object).subarray(4);
const item = (name: string) => ({ metadata: service(name).metadata, spec: service(name).spec });

describe("frames", () => {
  it("22/6 are the same however the bytes are cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 300 })),
        fc.array(fc.nat({ max: 9 })),
        (frames, cuts) => {
          const bytes = Buffer.concat(frames.map((each) => frame(Buffer.from(each))));
          const split = frameSplitter(1 << 20);
          const found: Buffer[] = [];
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const size = 1 + (cuts[i % Math.max(1, cuts.length)] ?? 3);
            found.push(...split(bytes.subarray(at, at + size)));
            at += size;
          }
          expect(found.map((each) => each.toString("hex"))).toEqual(
            frames.map((each) => Buffer.from(each).toString("hex")),
          );
        },
      ),
    );
  });

  it("are bounded before their bytes arrive", () => {
    const split = frameSplitter(10);
    expect(split(frame(Buffer.alloc(10)))).toHaveLength(1);
    expect(() => split(Buffer.from([0, 0, 0, 11]))).toThrow("a frame is longer than 10 bytes");
    expect(() => frameSplitter(10)(Buffer.from([0xff, 0xff, 0xff, 0xff]))).toThrow("longer than 10 bytes");
  });
});

describe("lists", () => {
  const list = {
    kind: "ServiceList",
    metadata: { resourceVersion: "7", continue: "next", remainingItemCount: 5 },
    items: [item("a"), item("b")],
  };

  it("have version, token and items", () => {
    const { metadata, items } = decodeList("Service", encodeObject(list)!);
    expect(metadata).toEqual({ resourceVersion: "7", continue: "next" });
    expect(items).toMatchObject([{ metadata: { name: "a" } }, { metadata: { name: "b" } }]);
  });

  it("cut at any byte, are refused", () => {
    const whole = encodeObject(list)!;
    // What follows the items may be missing.
    const items = whole.length - 4;
    for (let end = 0; end < items; end++)
      expect(() => decodeList("Service", whole.subarray(0, end))).toThrow(MalformedMessage);
  });

  it("name the object and the field that is malformed", () => {
    const good = encodeMessage(item("a"), tables.get("Service")!);
    const bad = Buffer.concat([good, field(2, field(1, Buffer.from([0x0a, 0x7f])))]);
    const bytes = envelope("v1", "ServiceList", Buffer.concat([field(2, good), field(2, bad)]));
    const reason = "Service shop/a: spec.ports[1].name: a length exceeds the message";
    expect(() => decodeList("Service", bytes)).toThrow(expect.objectContaining({ reason }));
  });
});

describe("envelopes", () => {
  const raw = encodeMessage(item("a"), tables.get("Service")!);
  it.each([
    ["nothing", Buffer.alloc(0), "it does not start with k8s"],
    ["JSON", Buffer.from('{"kind":"ServiceList"}'), "it does not start with k8s"],
    ["another kind", envelope("v1", "Table", raw), 'it is a "Table", not a ServiceList'],
    ["no object", Buffer.from("k8s\0"), "it has no object"],
    [
      "a compressed object",
      Buffer.concat([Buffer.from("k8s\0"), field(3, Buffer.from("gzip"))]),
      'its content is "gzip"',
    ],
    [
      "an object in JSON",
      Buffer.concat([Buffer.from("k8s\0"), field(4, Buffer.from("application/json"))]),
      'its content is "application/json"',
    ],
  ])("are refused with %s", (_, bytes, reason) => {
    expect(() => decodeList("Service", bytes)).toThrow(reason);
  });
});

describe("events", () => {
  it("have a type and an object", () => {
    const object = slice("web-1", "web", ["10.0.0.1"], { resourceVersion: "5" });
    expect(decodeEvent("EndpointSlice", event("MODIFIED", object))).toMatchObject({
      type: "MODIFIED",
      object: { metadata: { name: "web-1", resourceVersion: "5" }, endpoints: [{ addresses: ["10.0.0.1"] }] },
    });
  });

  it("22/9 are bookmarks with a version, and the end of a streaming list", () => {
    const bookmark = (annotations: object) =>
      decodeEvent(
        "Node",
        event("BOOKMARK", { kind: "Node", metadata: { resourceVersion: "9", annotations } }),
      );
    const end = { "k8s.io/initial-events-end": "true" };
    expect(bookmark(end)).toMatchObject({ object: { metadata: { resourceVersion: "9", annotations: end } } });
    expect(bookmark({ "k8s.io/initial-events-enD": "true" })).toEqual(bookmark({ other: "true" }));
  });

  it("of unknown type are passed on without their object", () => {
    const unknown = Buffer.concat([field(1, Buffer.from("LATER")), field(2, field(1, Buffer.from("any")))]);
    expect(decodeEvent("Service", unknown)).toEqual({ type: "LATER", object: null });
  });

  it("of another kind are refused", () => {
    expect(() => decodeEvent("Service", event("ADDED", { kind: "Node", metadata: { name: "a" } }))).toThrow(
      'it is a "Node", not a Service',
    );
  });

  it("changed at random, are malformed or another event", () => {
    const whole = event("ADDED", slice("web-1", "web", ["10.0.0.1", "10.0.0.2"]));
    const change = fc.tuple(fc.nat(whole.length - 1), fc.integer({ min: 0, max: 255 }));
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 6 }), fc.nat(whole.length), (changes, end) => {
        const bytes = Buffer.from(whole.subarray(0, end));
        for (const [at, value] of changes) if (at < end) bytes[at] = value;
        try {
          decodeEvent("EndpointSlice", bytes);
        } catch (error) {
          if (!(error instanceof MalformedMessage)) throw error;
        }
      }),
      { numRuns: 2000 },
    );
  });
});

it("a Status has code, reason, message, causes and delay", () => {
  const status = {
    kind: "Status",
    status: "Failure",
    message: "Too large resource version",
    reason: "Timeout",
    details: { causes: [{ reason: "ResourceVersionTooLarge" }], retryAfterSeconds: 3 },
    code: 504,
  };
  const { status: _, ...kept } = status;
  expect(decodeStatus(encodeObject(status)!)).toEqual(kept);
});
