// Tests of decoding Kubernetes protobuf, valid and malformed.
import { describe, expect, it } from "vitest";
import { decodeProtobuf } from "./protobuf.ts";

type Value = string | number | boolean | readonly Part[];
type Part = readonly [number: number, value: Value];

/** Bytes of a message, written by hand. */
function message(...parts: readonly Part[]): Buffer {
  return Buffer.concat(parts.map(([number, value]) => Buffer.concat([...field(number, value)])));
}

function* field(number: number, value: Value): Generator<Buffer> {
  if (typeof value === "number" || typeof value === "boolean") {
    yield varint(number << 3);
    yield varint(Number(value));
    return;
  }
  const bytes = typeof value === "string" ? Buffer.from(value) : message(...value);
  yield varint((number << 3) | 2);
  yield varint(bytes.length);
  yield bytes;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}

function envelope(apiVersion: string, kind: string, ...raw: readonly Part[]): Buffer {
  const whole = message(
    [
      1,
      [
        [1, apiVersion],
        [2, kind],
      ],
    ],
    [2, raw],
  );
  return Buffer.concat([Buffer.from("k8s\0"), whole]);
}

describe("protobuf", () => {
  it("gives a Service as in JSON", () => {
    const bytes = envelope(
      "v1",
      "Service",
      [
        1,
        [
          [1, "made"],
          [3, ""],
          [
            11,
            [
              [1, "app"],
              [2, "made"],
            ],
          ],
        ],
      ],
      [
        2,
        [
          [
            1,
            [
              [1, "80-8080"],
              [2, "TCP"],
              [3, 80],
              [
                4,
                [
                  [1, 0],
                  [2, 8080],
                  [3, ""],
                ],
              ],
              [5, 30500],
            ],
          ],
          [
            1,
            [
              [1, "web"],
              [3, 81],
              [
                4,
                [
                  [1, 1],
                  [3, "http"],
                ],
              ],
            ],
          ],
          [
            2,
            [
              [1, "app"],
              [2, "made"],
            ],
          ],
          [4, "NodePort"],
          [13, true],
          [99, "unknown"],
        ],
      ],
      [3, [[1, []]]],
    );
    expect(decodeProtobuf(bytes)).toEqual({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "made", labels: { app: "made" } },
      spec: {
        ports: [
          { name: "80-8080", protocol: "TCP", port: 80, targetPort: 8080, nodePort: 30500 },
          { name: "web", port: 81, targetPort: "http" },
        ],
        selector: { app: "made" },
        type: "NodePort",
        publishNotReadyAddresses: true,
      },
    });
  });

  it("reads negative numbers and lists of texts", () => {
    const bytes = envelope("v1", "DeleteOptions", [1, -1], [5, "All"], [5, "Some"]);
    expect(decodeProtobuf(bytes)).toMatchObject({ gracePeriodSeconds: -1, dryRun: ["All", "Some"] });
  });

  it.each([
    ["nothing", Buffer.alloc(0), "not Kubernetes protobuf"],
    ["JSON", Buffer.from("{}"), "not Kubernetes protobuf"],
    ["half of it", envelope("v1", "Service", [1, [[1, "made"]]]).subarray(0, 15), "ends too early"],
    ["groups", Buffer.from("k8s\0\u000b"), "not protobuf"],
    ["a text where a number is due", envelope("v1", "DeleteOptions", [1, "x"]), "a number was expected"],
    ["another kind", envelope("v1", "Secret"), "Secret only as JSON"],
  ])("refuses %s", (_, bytes, reason) => {
    expect(() => decodeProtobuf(bytes)).toThrow(reason);
  });
});
