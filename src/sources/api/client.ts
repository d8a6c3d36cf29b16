// One request to the API at a time: throttled, authenticated, unzipped, and every failure sorted.
import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { pipeline, type Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { World } from "../world.ts";
import { tunnelAgent } from "./agent.ts";
import type { Connection } from "./connection.ts";
import { ApiFailure, failureOf } from "./failure.ts";
import type { Throttle } from "./throttle.ts";

export type Ask = {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below the server's own path: `/api/v1/services`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: { readonly contentType: string; readonly text: string };
  /** How long the head of the answer may take. */
  readonly headMs?: number;
};

/** The body of an answer that is a success; destroy it when it is not read to the end. */
export type ApiClient = {
  /** Rejects with ApiFailure, or with the signal's reason. */
  stream(ask: Ask, signal: AbortSignal): Promise<Readable>;
  /** The whole answer as JSON. */
  json(ask: Ask, signal: AbortSignal): Promise<unknown>;
  /** Closes idle connections. */
  close(): void;
};

const headMs = 60_000;
const idleMs = 60_000;
const largestBody = 1 << 30;

export function apiClient(
  connection: Connection,
  world: World,
  throttle: Throttle,
  userAgent: string,
): ApiClient {
  const agent = agentFor(connection);
  const stream = async (ask: Ask, signal: AbortSignal): Promise<Readable> => {
    const answer = await told(ask, signal);
    const code = answer.statusCode ?? 0;
    const type = answer.headers["content-type"] ?? "";
    if (code >= 200 && code < 300 && isJson(type)) return unzipped(answer);
    if (code === 401) connection.credentials.renew();
    const body = await readBody(unzipped(answer), 1 << 20).catch(() => "");
    if (code >= 200 && code < 300) {
      throw new ApiFailure(
        "garbled",
        `Cannot read the answer: it is ${JSON.stringify(type.slice(0, 100))}, not JSON`,
        { code },
      );
    }
    throw failureOf(code, parsedOrNull(body), answer.headers["retry-after"] ?? "", world.clock.wall());
  };
  return {
    stream,
    json: async (ask, signal) => parsed(await readBody(await stream(ask, signal), largestBody)),
    close: () => agent.destroy(),
  };

  /** Sends when the speed limit allows it, and tells what came of it. */
  async function told(ask: Ask, signal: AbortSignal): Promise<IncomingMessage> {
    const { clock, onRequest } = world;
    const askedAt = clock.steady();
    await throttle(signal);
    const sentAt = clock.steady();
    let resent = false;
    const tell = (answer: IncomingMessage | null) =>
      onRequest?.({
        method: ask.method ?? "GET",
        host: connection.server.host,
        code: answer?.statusCode ?? null,
        seconds: (clock.steady() - sentAt) / 1000,
        heldSeconds: (sentAt - askedAt) / 1000,
        requestBytes: Buffer.byteLength(ask.body?.text ?? ""),
        responseBytes: lengthOf(answer),
        resent,
      });
    try {
      const answer = await answered(ask, signal, () => {
        resent = true;
      });
      tell(answer);
      return answer;
    } catch (error) {
      if (!signal.aborted) tell(null);
      throw error;
    }
  }

  async function answered(ask: Ask, signal: AbortSignal, onResend: () => void): Promise<IncomingMessage> {
    const options = await requestOptions(ask, signal);
    try {
      return await send(options, ask, signal);
    } catch (error) {
      // A kept connection may have been closed while it was idle; that says nothing about the server.
      if (!(error instanceof StaleConnection) || (ask.method ?? "GET") !== "GET") throw error;
      onResend();
      return send(options, ask, signal);
    }
  }

  async function requestOptions(ask: Ask, signal: AbortSignal): Promise<RequestOptions> {
    try {
      const { headers, cert, key } = await connection.credentials.current(signal);
      const { server, insecure, tlsServerName } = connection;
      const ca = await connection.ca();
      return {
        host: server.hostname.replace(/^\[|\]$/g, ""),
        port: server.port,
        method: ask.method ?? "GET",
        path: pathOf(server, ask),
        headers: {
          accept: "application/json",
          "accept-encoding": "gzip",
          "user-agent": userAgent,
          ...(ask.body
            ? { "content-type": ask.body.contentType, "content-length": Buffer.byteLength(ask.body.text) }
            : {}),
          ...(headers as Record<string, string | string[]>),
        },
        agent,
        ...(server.protocol === "https:"
          ? {
              rejectUnauthorized: !insecure,
              ...(ca === "" ? {} : { ca }),
              ...(cert === "" ? {} : { cert, key }),
              ...(tlsServerName === "" ? {} : { servername: tlsServerName }),
            }
          : {}),
      };
    } catch (error) {
      signal.throwIfAborted();
      throw new ApiFailure("lost", (error as Error).message, { cause: error });
    }
  }

  function send(options: RequestOptions, ask: Ask, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const request = (connection.server.protocol === "https:" ? httpsRequest : httpRequest)(options);
      const limit = ask.headMs ?? headMs;
      const cancel = world.clock.after(limit, () =>
        request.destroy(
          new ApiFailure(
            "lost",
            `Cannot reach ${connection.server.host}: no answer within ${limit / 1000} s`,
          ),
        ),
      );
      const abort = () => request.destroy();
      signal.addEventListener("abort", abort, { once: true });
      request.once("close", () => {
        cancel();
        signal.removeEventListener("abort", abort);
      });
      request.once("response", (answer) => {
        cancel();
        resolve(answer);
      });
      request.on("error", (error) =>
        reject(signal.aborted ? (signal.reason as Error) : lost(error, request.reusedSocket)),
      );
      request.end(ask.body?.text);
    });
  }

  function lost(error: Error & { code?: string }, reused: boolean): Error {
    if (error instanceof ApiFailure) return error;
    const message = `Cannot reach ${connection.server.host}: ${error.message || error.code}`;
    if (reused && error.code === "ECONNRESET") return new StaleConnection("lost", message, { cause: error });
    return new ApiFailure("lost", message, { cause: error });
  }

  /** Everything, as long as bytes keep coming. */
  async function readBody(body: Readable, maxBytes: number): Promise<string> {
    const stalled = () =>
      body.destroy(new ApiFailure("lost", `Cannot read the answer: no bytes for ${idleMs / 1000} s`));
    let cancel = world.clock.after(idleMs, stalled);
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      for await (const chunk of body) {
        cancel();
        cancel = world.clock.after(idleMs, stalled);
        chunks.push(chunk as Buffer);
        size += (chunk as Buffer).length;
        if (size > maxBytes)
          throw new ApiFailure("garbled", `Cannot read the answer: it is larger than ${maxBytes} bytes`);
      }
    } catch (error) {
      throw lost(error as Error, false);
    } finally {
      cancel();
    }
    return Buffer.concat(chunks).toString();
  }
}

class StaleConnection extends ApiFailure {}

function agentFor({ server, proxy }: Connection): HttpAgent {
  // Probes on idle connections find peers that went away without a word.
  const options = { keepAlive: true, keepAliveMsecs: 30_000 };
  if (proxy !== null) return tunnelAgent(proxy, server, options);
  return server.protocol === "https:" ? new HttpsAgent(options) : new HttpAgent(options);
}

function pathOf(server: URL, { path, query = {} }: Ask): string {
  const text = new URLSearchParams(query).toString();
  return `${server.pathname.replace(/\/$/, "")}${path}${text === "" ? "" : `?${text}`}`;
}

function unzipped(answer: IncomingMessage): Readable {
  if (answer.headers["content-encoding"] !== "gzip") return answer;
  // The server flushes each event as a gzip member of its own; gunzip hands every one on at once.
  return pipeline(answer, createGunzip(), () => {});
}

function lengthOf(answer: IncomingMessage | null): number | null {
  const length = answer?.headers["content-length"];
  return length === undefined ? null : Number(length);
}

function isJson(contentType: string): boolean {
  return contentType.split(";")[0]!.trim().toLowerCase() === "application/json";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ApiFailure("garbled", `Cannot read the answer: ${(error as Error).message}`, { cause: error });
  }
}

function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
