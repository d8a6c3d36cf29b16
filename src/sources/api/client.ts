// Sends requests to the API: rate-limited, authenticated, decompressed, with every failure classified.
import type { IncomingMessage, RequestOptions } from "node:http";
import { pipeline, type Readable } from "node:stream";
import { isDeepStrictEqual } from "node:util";
import { createGunzip } from "node:zlib";
import { parseAddress } from "../../model/address.ts";
import type { ServerAddress } from "../source.ts";
import type { World } from "../world.ts";
import type { Connection } from "./connection.ts";
import type { Presented } from "./credentials.ts";
import { defaultAccept, jsonType, mediaTypeOf, protobufType } from "./encoding/accept.ts";
import { type Encoding, json, parseJson, protobuf } from "./encoding/encoding.ts";
import { ApiFailure, failureOf } from "./failure.ts";
import { bareHost, portOf } from "./proxy.ts";
import { type Throttle, unlimited } from "./throttle.ts";
import { transport } from "./transport.ts";

export type ApiRequest = {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below the server's own path: `/api/v1/services`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: { readonly contentType: string; readonly text: string };
  /** Whether the response may be in protobuf, if the settings allow it; otherwise it is JSON. */
  readonly protobuf?: boolean;
  /** Timeout for the response header. */
  readonly headMs?: number;
  /** Limit for the decompressed response in bytes; absent: the limit for lists. */
  readonly mostBytes?: number;
  /** Receives the size of the response. */
  readonly onBytes?: (bytes: number) => void;
};

export type ApiClient = {
  /** Streams the body of a successful response: a watch, which is not rate-limited. Rejects with ApiFailure, or with the signal's reason. */
  stream(
    request: ApiRequest,
    signal: AbortSignal,
  ): Promise<{ readonly body: Readable; readonly encoding: Encoding }>;
  /** The whole response. */
  read(
    request: ApiRequest,
    signal: AbortSignal,
  ): Promise<{ readonly bytes: Buffer; readonly encoding: Encoding }>;
  /** The whole response, which is requested as JSON. */
  json(request: ApiRequest, signal: AbortSignal): Promise<unknown>;
  /** null: the server is configured by name. */
  readonly server: ServerAddress | null;
  /** Closes idle connections. */
  close(): void;
};

/** A response whose body is not read yet, and a callback for its size; null: it was not usable. */
type Reply = { readonly answer: IncomingMessage; readonly report: (responseBytes: number | null) => void };

const headMs = 60_000;
const idleMs = 60_000;
/** Several times the largest list of the largest clusters, and well below the maximum length of a string. */
const largestBody = 1 << 28;
const largestFailure = 1 << 20;
/** Node.js uses 16 KiB: each chunk is a task on another thread, and a list has hundreds of them. */
const unzippedChunk = 1 << 16;

export function apiClient(
  connection: Connection,
  world: World,
  throttle: Throttle,
  userAgent: string,
  { accept = defaultAccept, largest = largestBody } = {},
): ApiClient {
  const wire = transport(connection, world.clock);
  return {
    async stream(request, signal) {
      const { answer, report } = await accepted(request, signal, null);
      report(null);
      return bodyOf(answer, request);
    },
    read,
    json: async (request, signal) => parseJson((await read({ ...request, protobuf: false }, signal)).bytes),
    server: serverAddress(connection),
    close: () => wire.close(),
  };

  async function read(
    request: ApiRequest,
    signal: AbortSignal,
  ): Promise<{ bytes: Buffer; encoding: Encoding }> {
    const { answer, report } = await accepted(request, signal, throttle);
    let bytes: Buffer | null = null;
    try {
      const { body, encoding } = await bodyOf(answer, request);
      bytes = await readBody(body, Math.min(largest, request.mostBytes ?? largest));
      request.onBytes?.(bytes.length);
      return { bytes, encoding };
    } finally {
      report(bytes?.length ?? null);
    }
  }

  async function bodyOf(
    answer: IncomingMessage,
    { protobuf: allowed }: ApiRequest,
  ): Promise<{ body: Readable; encoding: Encoding }> {
    const code = answer.statusCode ?? 0;
    if (code < 200 || code > 299) throw await refusal(answer, code);
    const encoding = encodingOf(answer);
    if (encoding === json || (encoding === protobuf && allowed)) return { body: unzipped(answer), encoding };
    answer.destroy();
    const type = JSON.stringify(answer.headers["content-type"]?.slice(0, 100) ?? "");
    const wanted = allowed ? "JSON or protobuf" : "JSON";
    throw new ApiFailure("garbled", `Cannot read the response: it is ${type}, not ${wanted}`, { code });
  }

  /**
   * If credentials were refused and have been rotated since, the request is repeated immediately; so it is as JSON if the
   * server does not have the requested encoding.
   */
  async function accepted(request: ApiRequest, signal: AbortSignal, limit: Throttle | null): Promise<Reply> {
    const shown = await presented(connection, signal);
    const reply = await sent(request, shown, signal, limit);
    const code = reply.answer.statusCode;
    const repeat = (again: ApiRequest, credentials: Presented) => {
      reply.report(null);
      reply.answer.resume();
      return sent(again, credentials, signal, limit);
    };
    if (request.protobuf && (code === 406 || code === 415))
      return repeat({ ...request, protobuf: false }, shown);
    const renewed = code === 401 ? await renewedSince(shown, signal) : null;
    return renewed === null ? reply : repeat(request, renewed);
  }

  /** Credentials that differ from these; null when there are none. */
  async function renewedSince(shown: Presented, signal: AbortSignal): Promise<Presented | null> {
    const { credentials } = connection;
    const other = async () => {
      const now = await credentials.current(signal);
      return isDeepStrictEqual(now, shown) ? null : now;
    };
    try {
      // Another request may have renewed them already.
      const known = await other();
      if (known !== null) return known;
      credentials.renew();
      return await other();
    } catch {
      signal.throwIfAborted();
      return null;
    }
  }

  /** Sends when the rate limit allows it. */
  async function sent(
    request: ApiRequest,
    shown: Presented,
    signal: AbortSignal,
    limit: Throttle | null,
  ): Promise<Reply> {
    const { clock, onRequest } = world;
    const requestedAt = clock.steady();
    await limit?.(signal);
    const sentAt = clock.steady();
    const body = request.body?.text ?? "";
    let resent = false;
    const onResend = () => {
      resent = true;
    };
    const reportOf = (code: number | null) => (responseBytes: number | null) => {
      const cost = () => ({
        seconds: (clock.steady() - requestedAt) / 1000,
        heldSeconds: limit === unlimited ? null : (sentAt - requestedAt) / 1000,
        requestBytes: Buffer.byteLength(body),
        responseBytes,
      });
      const method = request.method ?? "GET";
      onRequest?.({
        method,
        host: connection.server.host,
        code,
        resent,
        cost: limit === null ? null : cost(),
      });
    };
    try {
      const options = await requestOptions(connection, shown, { userAgent, accept }, request, signal);
      const answer = await wire.send({ options, body, headMs: request.headMs ?? headMs, onResend }, signal);
      return { answer, report: reportOf(answer.statusCode ?? null) };
    } catch (error) {
      if (!signal.aborted) reportOf(null)(null);
      throw error;
    }
  }

  async function refusal(answer: IncomingMessage, code: number): Promise<ApiFailure> {
    const body = unzipped(answer);
    // A refusal also counts when its body arrives too slowly to be read.
    const cancel = world.clock.after(idleMs, () => body.destroy());
    const bytes = await readBody(body, largestFailure).catch(() => Buffer.alloc(0));
    cancel();
    const status = (encodingOf(answer) ?? json).status(bytes);
    const failure = failureOf(code, status, answer.headers["retry-after"] ?? "", world.clock.wall());
    const { warnings, server } = connection;
    if (code !== 401 || server.protocol === "https:" || warnings.length === 0) return failure;
    return new ApiFailure(failure.kind, `${failure.message}: ${warnings.join(", ")}`, { code });
  }

  /** Reads everything, as long as bytes keep arriving. */
  async function readBody(body: Readable, maxBytes: number): Promise<Buffer> {
    const stalled = () =>
      body.destroy(new ApiFailure("lost", `Cannot read the response: no bytes for ${idleMs / 1000} s`));
    let cancel = world.clock.after(idleMs, stalled);
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      for await (const chunk of body) {
        cancel();
        cancel = world.clock.after(idleMs, stalled);
        chunks.push(chunk as Buffer);
        size += (chunk as Buffer).length;
        if (size > maxBytes) {
          throw new ApiFailure("garbled", `Cannot read the response: it is larger than ${maxBytes} bytes`);
        }
      }
    } catch (error) {
      throw wire.lost(error as Error);
    } finally {
      cancel();
    }
    return Buffer.concat(chunks);
  }
}

async function presented({ credentials }: Connection, signal: AbortSignal): Promise<Presented> {
  try {
    return await credentials.current(signal);
  } catch (error) {
    throw unready(error, signal);
  }
}

async function requestOptions(
  { server, ca, insecure, tlsServerName }: Connection,
  { headers, cert, key }: Presented,
  { userAgent, accept }: { readonly userAgent: string; readonly accept: string },
  request: ApiRequest,
  signal: AbortSignal,
): Promise<RequestOptions> {
  const authorities = await ca().catch((error: unknown) => {
    throw unready(error, signal);
  });
  const body = request.body
    ? { "content-type": request.body.contentType, "content-length": Buffer.byteLength(request.body.text) }
    : {};
  const tls = {
    rejectUnauthorized: !insecure,
    ...(authorities === "" ? {} : { ca: authorities }),
    ...(cert === "" ? {} : { cert, key }),
    ...(tlsServerName === "" ? {} : { servername: tlsServerName }),
  };
  return {
    host: bareHost(server),
    port: server.port,
    method: request.method ?? "GET",
    path: pathOf(server, request),
    headers: {
      accept: request.protobuf ? accept : jsonType,
      "accept-encoding": "gzip",
      "user-agent": userAgent,
      ...body,
      ...(headers as Record<string, string | string[]>),
    },
    ...(server.protocol === "https:" ? tls : {}),
  };
}

/** Credentials for the request cannot be read: perhaps their file is being replaced. */
function unready(error: unknown, signal: AbortSignal): Error {
  if (signal.aborted) return signal.reason as Error;
  return new ApiFailure("lost", (error as Error).message, { cause: error });
}

function serverAddress({ server }: Connection): ServerAddress | null {
  const address = parseAddress(bareHost(server));
  return address === null ? null : { address, port: portOf(server) };
}

function pathOf(server: URL, { path, query = {} }: ApiRequest): string {
  const text = new URLSearchParams(query).toString();
  return `${server.pathname.replace(/\/$/, "")}${path}${text === "" ? "" : `?${text}`}`;
}

function unzipped(answer: IncomingMessage): Readable {
  if (answer.headers["content-encoding"] !== "gzip") return answer;
  // The server flushes each event as a separate gzip member; gunzip passes each on immediately.
  return pipeline(answer, createGunzip({ chunkSize: unzippedChunk }), () => {});
}

function encodingOf(answer: IncomingMessage): Encoding | null {
  switch (mediaTypeOf(answer.headers["content-type"] ?? "")) {
    case jsonType:
      return json;
    case protobufType:
      return protobuf;
    default:
      return null;
  }
}
