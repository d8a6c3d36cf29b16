// How responses are encoded: as JSON, or in an encoding that the server was given, for clients that accept it.
import type { IncomingMessage } from "node:http";

export type Encoder = {
  readonly contentType: string;
  /** Of watches. */
  readonly streamType: string;
  /** A whole response; null: the encoding has no such kind. */
  readonly object: (body: unknown) => Buffer | null;
  /** One event of a watch. */
  readonly event: (type: string, object: object) => Buffer;
};

export const jsonEncoder: Encoder = {
  contentType: "application/json",
  streamType: "application/json",
  object: (body) => Buffer.from(`${JSON.stringify(body)}\n`),
  event: (type, object) => Buffer.from(`${JSON.stringify({ type, object })}\n`),
};

/** The encoder for this client. */
export function encoderFor(message: IncomingMessage, offered: Encoder = jsonEncoder): Encoder {
  const accepted = (message.headers.accept ?? "").split(",").map((type) => type.split(";")[0]!.trim());
  return accepted.includes(offered.contentType) ? offered : jsonEncoder;
}
