// Decodes what the API server sends in protobuf: lists, watch events and Status, in the form that they have in JSON.

import { describe, identify } from "../../../manifests/identity.ts";
import type { Kind } from "../../../manifests/objects.ts";
import { identityMessage, objectMessages } from "../../../manifests/protobuf/kinds.ts";
import { readMessage } from "../../../manifests/protobuf/message.ts";
import { MalformedMessage, Reader, wire } from "../../../manifests/protobuf/reader.ts";
import { type Decoded, type Message, messageOf } from "../../../manifests/protobuf/table.ts";
import { nested, openEnvelopeOf } from "./envelope.ts";

/** A list with the fields we keep of its items. Throws MalformedMessage. */
export function decodeList(kind: Kind, bytes: Buffer): Decoded {
  const reader = openEnvelopeOf(`${kind}List`, bytes);
  const items: Decoded[] = [];
  let metadata: Decoded = {};
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === tags.first) metadata = readMessage(nested(reader), listMetadata);
    else if (tag === tags.second) items.push(readObject(kind, nested(reader)));
    else reader.skip(tag);
  }
  return { metadata, items };
}

/** An event of a watch, with the fields we keep of its object. Throws MalformedMessage. */
export function decodeEvent(kind: Kind, bytes: Buffer): { readonly type: string; readonly object: unknown } {
  const reader = new Reader(bytes);
  let type = "";
  let object: Reader | null = null;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === tags.first) type = reader.sharedText();
    else if (tag === tags.second) object = rawIn(nested(reader));
    else reader.skip(tag);
  }
  return { type, object: object === null ? null : eventObject(type, kind, object) };
}

/** Throws MalformedMessage. */
export function decodeStatus(bytes: Buffer): Decoded {
  return statusIn(openEnvelopeOf("Status", bytes));
}

const tags = { first: (1 << 3) | wire.bytes, second: (2 << 3) | wire.bytes };

function eventObject(type: string, kind: Kind, { bytes, at, end }: Reader): Decoded | null {
  switch (type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return readObject(kind, openEnvelopeOf(kind, bytes, at, end));
    case "BOOKMARK":
      return readMessage(openEnvelopeOf(kind, bytes, at, end), bookmarkMessage);
    case "ERROR":
      return statusIn(openEnvelopeOf("Status", bytes, at, end));
    default:
      return null;
  }
}

/** The only field of an object inside an event. */
function rawIn(reader: Reader): Reader {
  let raw = new Reader(reader.bytes, reader.end, reader.end);
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === tags.first) raw = nested(reader);
    else reader.skip(tag);
  }
  return raw;
}

function readObject(kind: Kind, reader: Reader): Decoded {
  const { bytes, at, end } = reader;
  try {
    return readMessage(reader, objectMessages[kind]);
  } catch (error) {
    if (error instanceof MalformedMessage) error.object = nameIn(kind, new Reader(bytes, at, end));
    throw error;
  }
}

/** Which object it is, as far as that can be read. */
function nameIn(kind: Kind, reader: Reader): string {
  const known: Decoded = {};
  try {
    readMessage(reader, identityMessage, known);
  } catch {
    // What was read before the error counts.
  }
  return describe(identify(kind, known));
}

function statusIn(reader: Reader): Decoded {
  return { ...readMessage(reader, statusMessage), kind: "Status" };
}

const listMetadata: Message = messageOf(
  { resourceVersion: "own", continue: "own" },
  { resourceVersion: 2, continue: 3 },
);

const bookmarkMessage: Message = messageOf(
  { metadata: { resourceVersion: "own", annotations: { "k8s.io/initial-events-end": "shared" } } },
  { metadata: [1, { resourceVersion: 6, annotations: { keyed: 12 } }] },
);

const statusMessage: Message = messageOf(
  {
    message: "own",
    reason: "own",
    code: "own",
    details: { causes: [{ reason: "own" }], retryAfterSeconds: "own" },
  } as const,
  {
    message: 3,
    reason: 4,
    code: { int: 6 },
    details: [5, { causes: [4, { reason: 1 }], retryAfterSeconds: { int: 5 } }],
  },
);
