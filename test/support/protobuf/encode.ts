// Encodes objects as an API server does in protobuf: envelopes, lists, watch events, Status.
import type { Encoder } from "../../../playground/api/http/encoder.ts";
import { type Table, type Type, tables } from "./kinds.ts";

/** For the small API server. */
export const protobufEncoder: Encoder = {
  contentType: "application/vnd.kubernetes.protobuf",
  streamType: "application/vnd.kubernetes.protobuf;stream=watch",
  object: encodeObject,
  event: encodeEvent,
};

const magic = Buffer.from("k8s\0");

/** The body of a response; null: this kind is served only as JSON. */
export function encodeObject(object: unknown): Buffer | null {
  const { kind = "", apiVersion = "v1", ...fields } = object as { kind?: string; apiVersion?: string };
  const table = tables.get(kind);
  return table === undefined ? null : envelope(apiVersion, kind, encodeMessage(fields, table));
}

/** One frame of a watch. */
export function encodeEvent(type: string, object: object): Buffer {
  const raw = encodeObject(object);
  if (raw === null) throw new Error(`the tests have no protobuf table of ${JSON.stringify(object)}`);
  return frame(Buffer.concat([field(1, Buffer.from(type)), field(2, field(1, raw))]));
}

/** Any bytes as a frame. */
export function frame(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

export function envelope(apiVersion: string, kind: string, raw: Buffer): Buffer {
  const typeMeta = Buffer.concat([field(1, Buffer.from(apiVersion)), field(2, Buffer.from(kind))]);
  const unknown = [field(1, typeMeta), field(2, raw), field(3, Buffer.of()), field(4, Buffer.of())];
  return Buffer.concat([magic, ...unknown]);
}

/** A value whose type is not the table's is written as what it is: text as bytes, a number as a varint. */
export function encodeMessage(object: object, table: Table): Buffer {
  const parts = Object.entries(object).flatMap(([name, value]) => {
    const known = table[name];
    if (known === undefined) throw new Error(`the tests have no protobuf number of the field ${name}`);
    return encodeField(known[0], known[1], value);
  });
  return Buffer.concat(parts);
}

function encodeField(number: number, type: Type, value: unknown): Buffer[] {
  if (value === undefined || value === null || type === "ignored") return [];
  if (Array.isArray(value)) return value.flatMap((item) => encodeField(number, type, item));
  if (typeof value === "string") return [field(number, type === "time" ? time(value) : text(type, value))];
  if (typeof value === "number") {
    if (type === "intOrText")
      return [field(number, Buffer.concat([varintField(1, 0), varintField(2, value)]))];
    return [varintField(number, value)];
  }
  if (typeof value === "boolean") return [varintField(number, Number(value))];
  if (type === "map") return Object.entries(value).map(([key, item]) => field(number, entry(key, item)));
  return [field(number, encodeMessage(value, typeof type === "object" ? type : {}))];
}

function text(type: Type, value: string): Buffer {
  const bytes = Buffer.from(value);
  return type === "intOrText" ? Buffer.concat([varintField(1, 1), field(3, bytes)]) : bytes;
}

function time(value: string): Buffer {
  return varintField(1, Date.parse(value) / 1000);
}

function entry(key: string, value: unknown): Buffer {
  return Buffer.concat([field(1, Buffer.from(key)), ...encodeField(2, "text", value)]);
}

/** A field of bytes: text or a message. */
export function field(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
}

export function varintField(number: number, value: number): Buffer {
  return Buffer.concat([varint(number << 3), varint(value)]);
}

/** Ten bytes for negative numbers. */
export function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(Math.trunc(value)));
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}
