// Sends responses: JSON (compressed when large), failures as Status objects, and injected faults.
import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { type Fault, isByteFault } from "../faults.ts";
import { Failure, statusOf } from "./failure.ts";
import { openWire } from "./wire.ts";

const compressFrom = 128 * 1024;

/** Applies a fault that replaces the whole response; false for other faults. */
export function interrupts(response: ServerResponse, fault: Fault): boolean {
  switch (fault.kind) {
    case "status":
      answerFailure(
        response,
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
      response.writeHead(200, { "content-type": fault.contentType }).end(fault.text);
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

export function answerJson(
  message: IncomingMessage,
  response: ServerResponse,
  code: number,
  body: unknown,
  fault: Fault | null = null,
): void {
  const text = `${JSON.stringify(body)}\n`;
  if (isByteFault(fault)) {
    response.writeHead(code, { "content-type": "application/json" });
    const wire = openWire(response, false);
    wire.arm(fault);
    wire.send(text);
    wire.end();
    return;
  }
  const gzip = text.length > compressFrom && acceptsGzip(message);
  response.writeHead(code, {
    "content-type": "application/json",
    ...(gzip ? { "content-encoding": "gzip" } : {}),
  });
  response.end(gzip ? gzipSync(text) : text);
}

export function answerFailure(response: ServerResponse, error: unknown): void {
  // Too late for a Status: break off the stream.
  if (response.headersSent) return void response.destroy();
  const failure = error instanceof Failure ? error : new Failure(500, "InternalError", String(error));
  const wait = failure.details.retryAfterSeconds;
  response.writeHead(failure.code, {
    "content-type": "application/json",
    ...(wait === undefined ? {} : { "retry-after": `${wait}` }),
  });
  response.end(`${JSON.stringify(statusOf(failure))}\n`);
}

export function acceptsGzip(message: IncomingMessage): boolean {
  return `${message.headers["accept-encoding"] ?? ""}`.includes("gzip");
}
