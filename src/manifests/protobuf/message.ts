// Decodes a message by its table: fields in the table are read, all others are skipped without allocating.
import { MalformedMessage, type Reader, wire } from "./reader.ts";
import { hasBytes, type SharedValues } from "./shared.ts";
import type { Decoded, Field, Message } from "./table.ts";

/**
 * Reads up to the end of the reader. A value of the wrong wire type is kept as a number or as text, so that `manifests/`
 * reports it like the same mistake in JSON. Throws MalformedMessage with the field.
 */
export function readMessage(reader: Reader, message: Message, into: Decoded = { ...message.empty }): Decoded {
  const { fields } = message;
  let field: Field | undefined;
  try {
    while (reader.at < reader.end) {
      field = undefined;
      const tag = reader.tag();
      const number = tag >>> 3;
      field = number < fields.length ? fields[number] : undefined;
      if (field === undefined) reader.skip(tag);
      else readField(reader, field, tag, into);
    }
  } catch (error) {
    throw error instanceof MalformedMessage && field !== undefined ? error.in(placeOf(field, into)) : error;
  }
  return into;
}

function readField(reader: Reader, field: Field, tag: number, into: Decoded): void {
  const { name, type } = field;
  const known = into[name];
  if (field.isList) {
    const item = readValue(reader, field, tag, undefined);
    if (known === undefined) into[name] = [item];
    else (known as unknown[]).push(item);
  } else if (type === "message" && field.shared === null && known === undefined && (tag & 7) === field.wire) {
    // Stored before it is read: of an object that is malformed later, the name is still wanted.
    const value = { ...field.message.empty };
    into[name] = value;
    readNested(reader, field.message, value);
  } else {
    const value = readValue(reader, field, tag, known);
    // Go writes empty text for text that is not set; its JSON omits it.
    if (value !== "" || type === "int" || type === "flag") into[name] = value;
  }
}

function readValue(reader: Reader, field: Field, tag: number, known: unknown): unknown {
  if ((tag & 7) !== field.wire) return wrongValue(reader, tag);
  switch (field.type) {
    case "own":
      return reader.text();
    case "shared":
      return reader.sharedText();
    case "int":
      return reader.int32();
    case "flag":
      return reader.int32() !== 0;
    case "time":
      return readTime(reader);
    case "map":
      return readEntry(reader, field.message, known);
    case "message":
      return field.shared === null
        ? readNested(reader, field.message, known)
        : readShared(reader, field.message, field.shared);
  }
}

/** A message that occurs twice is merged, as in Go; what was wrong about the first stays wrong. */
function readNested(reader: Reader, message: Message, known: unknown): unknown {
  const outer = reader.end;
  reader.end = reader.endOfValue();
  const value = readMessage(reader, message, typeof known === "object" ? (known as Decoded) : undefined);
  reader.end = outer;
  return typeof known === "number" ? known : value;
}

/** A value that other objects have too: they share it, so it is replaced and not merged when it occurs twice. */
function readShared(reader: Reader, message: Message, shared: SharedValues<Decoded>): unknown {
  const outer = reader.end;
  const end = reader.endOfValue();
  const start = reader.at;
  const known = shared.find(reader.bytes, start, end);
  if (known !== undefined) {
    reader.at = end;
    return known;
  }
  reader.end = end;
  const value = readMessage(reader, message);
  reader.end = outer;
  return shared.keep(reader.bytes, start, end, value);
}

/** One entry of a map: a message of key and value. Only keys of the table become names. */
function readEntry(reader: Reader, { fields, empty }: Message, known: unknown): unknown {
  const outer = reader.end;
  const end = reader.endOfValue();
  reader.end = end;
  let [keyStart, keyEnd, valueAt] = [end, end, -1];
  while (reader.at < end) {
    const tag = reader.tag();
    if (tag === keyTag) {
      keyEnd = reader.endOfValue();
      keyStart = reader.at;
      reader.at = keyEnd;
    } else {
      if (tag === valueTag) valueAt = reader.at;
      reader.skip(tag);
    }
  }
  const into = typeof known === "object" ? (known as Decoded) : { ...empty };
  for (const field of fields) {
    if (field === undefined || !hasBytes(field.name, reader.bytes, keyStart, keyEnd)) continue;
    reader.at = valueAt;
    into[field.name] = valueAt < 0 ? "" : field.type === "shared" ? reader.sharedText() : reader.text();
    reader.at = end;
  }
  reader.end = outer;
  return typeof known === "number" ? known : into;
}

const keyTag = (1 << 3) | wire.bytes;
const valueTag = (2 << 3) | wire.bytes;

/** In the form of JSON. */
function readTime(reader: Reader): string {
  const outer = reader.end;
  reader.end = reader.endOfValue();
  let seconds = 0;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === secondsTag) seconds = reader.int64();
    else reader.skip(tag);
  }
  reader.end = outer;
  const ms = seconds * 1000;
  return Math.abs(ms) <= latestMs ? new Date(ms).toISOString().replace(".000Z", "Z") : `${seconds}`;
}

const secondsTag = (1 << 3) | wire.varint;
/** The last time that a Date can hold. */
const latestMs = 8.64e15;

function wrongValue(reader: Reader, tag: number): number | string {
  switch (tag & 7) {
    case wire.varint:
      return reader.int64();
    case wire.bytes:
      return reader.text();
    default:
      reader.skip(tag);
      return Number.NaN;
  }
}

/** The path of the value that is being read. */
function placeOf({ name, isList }: Field, into: Decoded): string {
  return isList ? `${name}[${(into[name] as unknown[] | undefined)?.length ?? 0}]` : name;
}
