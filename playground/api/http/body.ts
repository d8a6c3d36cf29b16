// Reads the body of a write: media type, size, and content in JSON or protobuf.
import type { IncomingMessage } from "node:http";
import type { Verb } from "../faults.ts";
import { decodeProtobuf } from "../protobuf/protobuf.ts";
import { badRequest, Failure } from "./failure.ts";
import { checkInput } from "./input.ts";

/** `mediaType`: without parameters, in lower case. */
export type WriteBody = { readonly mediaType: string; readonly bytes: Buffer };

/** The limit of the API server. */
export const bodyLimit = 3 * 1024 * 1024;

const json = "application/json";
const protobuf = "application/vnd.kubernetes.protobuf";
export const applyPatch = "application/apply-patch+yaml";
const patches = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  applyPatch,
];

/** Throws Failure: 413 for a body that is too large, 415 for another media type. A delete may have no body. */
export async function readBody(message: IncomingMessage, verb: Verb): Promise<WriteBody> {
  const contentType = message.headers["content-type"] ?? "";
  const mediaType = (contentType.split(";")[0] ?? "").trim().toLowerCase();
  const known = verb === "patch" ? patches : [json, protobuf];
  const isKnown = known.includes(mediaType) && message.headers["content-encoding"] === undefined;
  const mayBeEmpty = (verb === "delete" || verb === "deletecollection") && contentType === "";
  if (!isKnown && !mayBeEmpty) throw unknownFormat(contentType);
  const bytes = await bytesOf(message);
  if (!isKnown && bytes.length > 0) throw unknownFormat(contentType);
  return { mediaType, bytes };
}

/** Throws Failure 400 when it cannot be read, nests too deep, or has a key that is refused. */
export function decoded({ mediaType, bytes }: WriteBody): unknown {
  const value = mediaType === protobuf ? decodeProtobuf(bytes) : parsed(bytes);
  checkInput(value);
  return value;
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch (error) {
    throw badRequest(`cannot read the body: ${(error as Error).message}`);
  }
}

export function unknownFormat(contentType: string): Failure {
  const message = `the body of the request was in an unknown format: ${JSON.stringify(contentType)}`;
  return new Failure(415, "UnsupportedMediaType", message);
}

async function bytesOf(message: IncomingMessage): Promise<Buffer> {
  if (Number(message.headers["content-length"] ?? 0) > bodyLimit) throw tooLarge();
  const chunks: Buffer[] = [];
  let length = 0;
  // Do not destroy the connection of an oversized body, so that the client can read the response.
  for await (const chunk of message.iterator({ destroyOnReturn: false })) {
    length += (chunk as Buffer).length;
    if (length > bodyLimit) throw tooLarge();
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

function tooLarge(): Failure {
  return new Failure(413, "RequestEntityTooLarge", `Request entity too large: limit is ${bodyLimit}`);
}
