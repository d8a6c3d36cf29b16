// The body of a write: JSON, YAML, or the binary format that parts of kubectl insist on.
import { parse } from "yaml";
import { badRequest, Failure } from "./failure.ts";
import { decodeProtobuf } from "./protobuf.ts";

export type WriteBody = { readonly contentType: string; readonly bytes: Buffer };

export function decoded({ contentType, bytes }: WriteBody): unknown {
  if (contentType.includes("protobuf")) return decodeProtobuf(bytes);
  if (contentType.includes("cbor")) throw unknownFormat(contentType);
  try {
    return contentType.includes("yaml") ? parse(bytes.toString()) : JSON.parse(bytes.toString());
  } catch (error) {
    throw badRequest(`cannot read the body: ${(error as Error).message}`);
  }
}

export function unknownFormat(contentType: string): Failure {
  const message = `the body of the request was in an unknown format: ${contentType}`;
  return new Failure(415, "UnsupportedMediaType", message);
}
