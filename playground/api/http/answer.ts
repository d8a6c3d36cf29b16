// Sends responses: objects (compressed when large), failures as Status objects, and injected faults.
import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { type Fault, isByteFault } from "../faults.ts";
import { type Encoder, jsonEncoder } from "./encoder.ts";
import { Failure, statusOf } from "./failure.ts";
import { openWire } from "./wire.ts";

const compressFrom = 128 * 1024;

/** Applies a fault that replaces the whole response; false for other faults. */
export function interrupts(response: ServerResponse, fault: Fault, encoder: Encoder): boolean {
  switch (fault.kind) {
    case "status":
      answerFailure(
        response,
        encoder,
        new Failure(fault.code, fault.reason ?? reasonOf(fault.code), `injected fault ${fault.code}`, {
          ...(fault.retryAfter === undefined ? {} : { retryAfterSeconds: fault.retryAfter }),
        }),
      );
      return true;
    case "hang":
      return true;
    case "drop":
      response.socket?.destroy();
      return true;
    case "body":
      response.writeHead(200, { "content-type": fault.contentType }).end(fault.body);
      return true;
    case "prelude":
    case "ignore-initial-events":
    case "reset":
    case "truncate":
    case "silent":
    case "drip":
      return false;
  }
}

function reasonOf(code: number): string {
  const reasons: Record<number, string> = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    410: "Expired",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
    504: "Timeout",
  };
  return reasons[code] ?? "InternalError";
}

export function answerObject(
  message: IncomingMessage,
  response: ServerResponse,
  code: number,
  body: unknown,
  { encoder = jsonEncoder, fault = null as Fault | null } = {},
): void {
  const { bytes, contentType } = encoded(body, encoder);
  if (isByteFault(fault)) {
    response.writeHead(code, { "content-type": contentType });
    const wire = openWire(response, false);
    wire.arm(fault);
    wire.send(bytes);
    wire.end();
    return;
  }
  const gzip = bytes.length > compressFrom && acceptsGzip(message);
  response.writeHead(code, {
    "content-type": contentType,
    ...(gzip ? { "content-encoding": "gzip" } : {}),
  });
  response.end(gzip ? gzipSync(bytes) : bytes);
}

/** In JSON what the encoding does not have. */
function encoded(body: unknown, encoder: Encoder): { readonly bytes: Buffer; readonly contentType: string } {
  const bytes = encoder.object(body);
  if (bytes !== null) return { bytes, contentType: encoder.contentType };
  return { bytes: jsonEncoder.object(body)!, contentType: jsonEncoder.contentType };
}

export function answerFailure(response: ServerResponse, encoder: Encoder, error: unknown): void {
  // Too late for a Status: break off the stream.
  if (response.headersSent) return void response.destroy();
  const failure = error instanceof Failure ? error : new Failure(500, "InternalError", String(error));
  const wait = failure.details.retryAfterSeconds;
  const { bytes, contentType } = encoded(statusOf(failure), encoder);
  response.writeHead(failure.code, {
    "content-type": contentType,
    ...(wait === undefined ? {} : { "retry-after": `${wait}` }),
  });
  response.end(bytes);
}

export function acceptsGzip(message: IncomingMessage): boolean {
  return `${message.headers["accept-encoding"] ?? ""}`.includes("gzip");
}
