// Decodes Kubernetes protobuf, which some kubectl commands always use.
import { badRequest, Failure } from "../http/failure.ts";
import { isMap, own, setOwn } from "../objects/object.ts";
import { type Field, kinds, type Message } from "./kinds.ts";

const magic = Buffer.from("k8s\0");

/** The object as in JSON, without the fields that the playground does not use. */
export function decodeProtobuf(bytes: Buffer): Record<string, unknown> {
  if (!bytes.subarray(0, 4).equals(magic)) throw badRequest("cannot read the body: not Kubernetes protobuf");
  const { typeMeta, raw } = read(bytes.subarray(4), envelope);
  const { apiVersion, kind } = isMap(typeMeta) ? typeMeta : {};
  const message = own(kinds, String(kind));
  if (message === undefined)
    throw new Failure(415, "UnsupportedMediaType", `the playground reads ${String(kind)} only as JSON`);
  return { apiVersion, kind, ...read(raw as Buffer, message) };
}

const envelope: Message = {
  1: ["typeMeta", { 1: ["apiVersion", "text"], 2: ["kind", "text"] }],
  2: ["raw", "bytes"],
};

function read(bytes: Buffer, message: Message): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (const { number, value } of fieldsIn(bytes)) {
    const field = message[number];
    if (field !== undefined) store(object, field, value);
  }
  return object;
}

function store(object: Record<string, unknown>, [name, kind, shape]: Field, value: number | Buffer): void {
  if (shape === "map") {
    const entry = read(value as Buffer, { 1: ["key", "text"], 2: ["value", kind] });
    object[name] ??= {};
    setOwn(
      object[name] as Record<string, unknown>,
      (entry.key as string | undefined) ?? "",
      entry.value ?? "",
    );
  } else if (shape === "list") {
    object[name] ??= [];
    (object[name] as unknown[]).push(plainValue(kind, value));
  } else {
    // Go encodes an unset string as an empty one.
    const found = plainValue(kind, value);
    if (found !== "") object[name] = found;
  }
}

function plainValue(kind: Field[1], value: number | Buffer): unknown {
  if (typeof value === "number") return kind === "flag" ? value !== 0 : value;
  switch (kind) {
    case "text":
      return value.toString();
    case "bytes":
      return value;
    case "number":
    case "flag":
      throw badRequest("cannot read the body: a number was expected");
    case "numberOrText": {
      const { type, number, text } = read(value, {
        1: ["type", "number"],
        2: ["number", "number"],
        3: ["text", "text"],
      });
      return type === 1 ? (text ?? "") : (number ?? 0);
    }
    default:
      return read(value, kind);
  }
}

/** The fields of a message in order: integers or bytes. */
function* fieldsIn(bytes: Buffer): Generator<{ number: number; value: number | Buffer }> {
  let at = 0;
  const varint = (): number => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined || shift > 63n) throw badRequest("cannot read the body: it ends too early");
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return Number(BigInt.asIntN(64, value));
    }
  };
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw badRequest("cannot read the body: it ends too early");
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = varint();
    const wire = tag & 7;
    if (wire === 0) yield { number: tag >>> 3, value: varint() };
    else if (wire === 2) yield { number: tag >>> 3, value: take(varint()) };
    else if (wire === 1 || wire === 5) take(wire === 1 ? 8 : 4);
    else throw badRequest("cannot read the body: it is not protobuf");
  }
}
