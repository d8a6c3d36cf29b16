// The envelope around every Kubernetes object in protobuf: a prefix, the object's kind, and its bytes.
import { MalformedMessage, Reader, wire } from "../../../manifests/protobuf/reader.ts";

const prefix = Buffer.from("k8s\0");

const tags = {
  typeMeta: (1 << 3) | wire.bytes,
  raw: (2 << 3) | wire.bytes,
  contentEncoding: (3 << 3) | wire.bytes,
  contentType: (4 << 3) | wire.bytes,
};
const kindTag = (2 << 3) | wire.bytes;

const mediaType = "application/vnd.kubernetes.protobuf";

type Envelope = {
  readonly kind: string;
  /** The object's bytes. */
  readonly object: Reader;
};

/** Reads the envelope that fills these bytes. */
function openEnvelope(bytes: Buffer, start: number, end: number): Envelope {
  if (end - start < prefix.length || !startsWithPrefix(bytes, start))
    throw new MalformedMessage("it does not start with k8s");
  const reader = new Reader(bytes, start + prefix.length, end);
  let kind = "";
  let object: Reader | null = null;
  while (reader.at < end) {
    const tag = reader.tag();
    if (tag === tags.typeMeta) kind = kindIn(reader);
    else if (tag === tags.raw) object = nested(reader);
    else if (tag === tags.contentEncoding || tag === tags.contentType) refuseUnlessPlain(reader.sharedText());
    else reader.skip(tag);
  }
  if (object === null) throw new MalformedMessage("it has no object");
  return { kind, object };
}

/** By hand: a call of `compare` takes as long as the rest of the envelope. */
function startsWithPrefix(bytes: Buffer, start: number): boolean {
  for (let i = 0; i < prefix.length; i++) if (bytes[start + i] !== prefix[i]) return false;
  return true;
}

/** The same, of an object that must be of this kind: the numbers of another would mean something else. */
export function openEnvelopeOf(kind: string, bytes: Buffer, start = 0, end = bytes.length): Reader {
  const envelope = openEnvelope(bytes, start, end);
  if (envelope.kind === kind) return envelope.object;
  throw new MalformedMessage(`it is a ${JSON.stringify(envelope.kind.slice(0, 100))}, not a ${kind}`);
}

/** A reader of the nested bytes at the position of this one, which skips them. */
export function nested(reader: Reader): Reader {
  const end = reader.endOfValue();
  const start = reader.at;
  reader.at = end;
  return new Reader(reader.bytes, start, end);
}

function kindIn(reader: Reader): string {
  const typeMeta = nested(reader);
  let kind = "";
  while (typeMeta.at < typeMeta.end) {
    const tag = typeMeta.tag();
    if (tag === kindTag) kind = typeMeta.sharedText();
    else typeMeta.skip(tag);
  }
  return kind;
}

function refuseUnlessPlain(encoding: string): void {
  if (encoding !== "" && encoding !== mediaType)
    throw new MalformedMessage(`its content is ${JSON.stringify(encoding.slice(0, 100))}`);
}
