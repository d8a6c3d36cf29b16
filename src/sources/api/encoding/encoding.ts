// The two encodings of the API, JSON and protobuf: how streams are split, and how lists, events and Status are read.
import { type Kind, slim } from "../../../manifests/objects.ts";
import { MalformedMessage } from "../../../manifests/protobuf/reader.ts";
import { ApiFailure, isMap, MalformedProtobuf } from "../failure.ts";
import { lineSplitter } from "../lines.ts";
import { decodeEvent, decodeList, decodeStatus } from "./decode.ts";
import { frameSplitter } from "./frames.ts";

export type RawEvent = { readonly type?: unknown; readonly object?: unknown };

/** What is decoded has the form of JSON: any shape. */
export type Encoding = {
  readonly name: "json" | "protobuf";
  /** Splits a watch into events. */
  readonly splitter: (maxBytes: number) => (chunk: Buffer) => Buffer[];
  /** Throws ApiFailure. */
  readonly event: (kind: Kind, bytes: Buffer) => RawEvent;
  /** Throws ApiFailure. */
  readonly list: (kind: Kind, bytes: Buffer) => unknown;
  /** null: it is something else. */
  readonly status: (bytes: Buffer) => unknown;
  /** Keeps the fields we use. */
  readonly slim: (kind: Kind, object: unknown) => unknown;
};

export const json: Encoding = {
  name: "json",
  splitter: lineSplitter,
  event(_, line) {
    const event = parsedOrNull(line);
    if (isMap(event)) return event;
    // Without the line: it may be huge.
    throw new ApiFailure("garbled", `Cannot read the watch: a line of ${line.length} bytes is not an event`);
  },
  list: (_, bytes) => parseJson(bytes),
  status: parsedOrNull,
  slim,
};

export const protobuf: Encoding = {
  name: "protobuf",
  splitter: frameSplitter,
  event: (kind, bytes) => decoded("watch", () => decodeEvent(kind, bytes)),
  list: (kind, bytes) => decoded("response", () => decodeList(kind, bytes)),
  status(bytes) {
    try {
      return decodeStatus(bytes);
    } catch (error) {
      if (error instanceof MalformedMessage) return null;
      throw error;
    }
  },
  // The decoder has skipped the others.
  slim: (_, object) => object,
};

function decoded<T>(what: string, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof MalformedMessage)) throw error;
    throw new MalformedProtobuf("garbled", `Cannot read the ${what}: ${error.reason}`, { cause: error });
  }
}

export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch (error) {
    const message = `Cannot read the response: ${(error as Error).message}`;
    throw new ApiFailure("garbled", message, { cause: error });
  }
}

function parsedOrNull(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return null;
  }
}
