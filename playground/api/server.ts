// A small Kubernetes API over HTTP or HTTPS, in this process: for the playground, and with faults on demand for tests.
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Server as Listener, Socket } from "node:net";
import { type AdmissionHooks, defaultHooks } from "./admission-hooks.ts";
import { discoveryAnswer, isHealthPath } from "./discovery/discovery.ts";
import { reviewAnswer } from "./discovery/reviews.ts";
import { type Fault, Faults, isByteFault, matches, type RequestMatch, type Verb } from "./faults.ts";
import { acceptsGzip, answerFailure, answerObject, interrupts } from "./http/answer.ts";
import { readBody } from "./http/body.ts";
import { type Encoder, encoderFor } from "./http/encoder.ts";
import { Failure } from "./http/failure.ts";
import { type Guard, hasToken, mustBeAllowed } from "./http/guard.ts";
import { type ApiRequest, parseRequest, urlOf } from "./http/request.ts";
import { openWire } from "./http/wire.ts";
import type { ApiObject, Draft } from "./objects/object.ts";
import { type Resource, resourceOfKind, resources } from "./objects/resources.ts";
import { Store } from "./objects/store.ts";
import { listObjects } from "./verbs/list.ts";
import { scaleOf } from "./verbs/scale.ts";
import { asTable, wantsTable } from "./verbs/table.ts";
import { checkWatch, type OpenWatch, serveWatch } from "./verbs/watch.ts";
import { writeObject } from "./verbs/write.ts";

export type ApiServerOptions = {
  readonly host?: string;
  /** 0: any free port; a restart keeps it. */
  readonly port?: number;
  /** PEM text; without it the server uses plain HTTP. */
  readonly tls?: { readonly key: string; readonly cert: string; readonly clientCA?: string };
  /** The bearer token every request must carry; read for each request, so it can rotate. */
  readonly token?: () => string;
  /** Whether a request is authorized; otherwise it is answered with 403. */
  readonly allows?: (request: ApiRequest) => boolean;
  readonly bookmarkMs?: number;
  readonly hooks?: AdmissionHooks;
  /** An encoding besides JSON, for objects, events and failures. */
  readonly encoder?: Encoder;
  readonly now?: () => number;
};

/** One request as it arrived. */
export type RecordedRequest = {
  readonly at: number;
  readonly verb: Verb | "other";
  readonly resource: string;
  readonly url: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
};

const requestLimit = 10_000;

export class ApiServer {
  readonly store: Store;
  readonly faults = new Faults();
  /** The latest requests, oldest first. */
  readonly seen: RecordedRequest[] = [];
  readonly #options: ApiServerOptions;
  readonly #guard: Guard;
  readonly #now: () => number;
  readonly #watches = new Set<OpenWatch>();
  readonly #sockets = new Set<Socket>();
  #server: Server | null = null;
  #port: number;

  constructor(options: ApiServerOptions = {}) {
    this.#options = options;
    this.#guard = guardOf(options);
    this.#now = options.now ?? Date.now;
    this.#port = options.port ?? 0;
    this.store = new Store({ now: this.#now, uid: randomUUID });
  }

  get url(): string {
    const host = this.#options.host ?? "127.0.0.1";
    return `${this.#options.tls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${this.#port}`;
  }

  /** Sockets that are open now. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Opens a socket, or serves on an open one, possibly of another network namespace. */
  async listen(opened?: Listener): Promise<void> {
    const { tls, host = "127.0.0.1" } = this.#options;
    const listener = (request: IncomingMessage, response: ServerResponse) =>
      void this.#answer(request, response);
    const server = tls
      ? createTlsServer(
          {
            key: tls.key,
            cert: tls.cert,
            ...(tls.clientCA ? { ca: tls.clientCA, requestCert: true, rejectUnauthorized: false } : {}),
          },
          listener,
        )
      : createServer(listener);
    server.keepAliveTimeout = 60_000;
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      if (opened) server.listen(opened, resolve);
      else server.listen(this.#port, host, resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Serves on an accepted connection, possibly of another network namespace. */
  adopt(connection: Socket): void {
    if (this.#server) this.#server.emit("connection", connection);
    else connection.destroy();
  }

  /** Closes every connection and refuses new ones; objects are kept. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (!server) return;
    const closed = new Promise((resolve) => server.close(resolve));
    this.dropConnections();
    await closed;
  }

  async restart(): Promise<void> {
    await this.close();
    await this.listen();
  }

  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** The open watches. */
  watches(match: RequestMatch = {}): OpenWatch[] {
    return [...this.#watches].filter(({ request }) => matches(match, request.verb, request.resource));
  }

  /** Creates or replaces an object, status included. */
  put(object: Draft & { readonly kind: string; readonly apiVersion?: string }): ApiObject {
    const resource = resourceFor(object.kind, object.apiVersion);
    const namespace = resource.namespaced ? (object.metadata?.namespace ?? "default") : "";
    const exists = this.store.has(resource, namespace, object.metadata?.name ?? "");
    return exists ? this.store.update(resource, object) : this.store.create(resource, object);
  }

  remove(kind: string, namespace: string, name: string, apiVersion?: string): void {
    this.store.delete(resourceFor(kind, apiVersion), namespace, name);
  }

  /** Deletes as for a client, with a grace period; `graceSeconds` overrides it, 0 deletes immediately. */
  deleteGracefully({ kind, metadata }: ApiObject, graceSeconds?: number): void {
    const { namespace = "", name } = metadata;
    const resource = resourceFor(kind);
    const { terminate } = this.#options.hooks ?? defaultHooks;
    const terminating = terminate(this.store.get(resource, namespace, name), graceSeconds);
    if (terminating === null) this.store.delete(resource, namespace, name);
    else this.store.update(resource, terminating);
  }

  /** All objects of a kind. */
  list(kind: string): ApiObject[] {
    return this.store.list(resourceFor(kind));
  }

  async #answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const encoder = encoderFor(message, this.#options.encoder);
    try {
      mustBeAllowed(message, this.#guard);
      const path = urlOf(message).pathname;
      if (isHealthPath(path)) return void response.writeHead(200).end("ok");
      if (path === "/openapi/v2") return answerNoDefinitions(response);
      const described = message.method === "GET" ? discoveryAnswer(path) : null;
      if (described !== null) return answerObject(message, response, 200, described);
      const review = message.method === "POST" ? reviewAnswer(path) : null;
      if (review !== null) return answerObject(message, response, 201, review);
      const request = parseRequest(message);
      this.#record(message, request);
      if (this.#options.allows?.(request) === false) throw forbidden(request);
      const fault = this.faults.take(request.verb, request.resource);
      if (fault && interrupts(response, fault, encoder)) return;
      if (request.verb === "watch") return this.#watch(message, response, request, fault, encoder);
      const { code, body } = await this.#outcome(message, request);
      answerObject(message, response, code, body, { encoder, fault });
    } catch (error) {
      // Discard the rest of the body, so that the client can read the response.
      message.resume();
      answerFailure(response, encoder, error);
    }
  }

  async #outcome(message: IncomingMessage, request: ApiRequest): Promise<{ code: number; body: unknown }> {
    const shown = (body: object) => (wantsTable(message) ? asTable(request, body, this.#now()) : body);
    if (request.verb === "list") return { code: 200, body: shown(listObjects(this.store, request)) };
    if (request.verb === "get") {
      const object = this.store.get(request.resource, request.namespace, request.name);
      return { code: 200, body: request.subresource === "scale" ? scaleOf(object) : shown(object) };
    }
    const body = await readBody(message, request.verb);
    return writeObject(this.store, request, body, this.#options.hooks ?? defaultHooks);
  }

  #watch(
    message: IncomingMessage,
    response: ServerResponse,
    request: ApiRequest,
    fault: Fault | null,
    encoder: Encoder,
  ): void {
    const options = {
      encoder,
      bookmarkMs: this.#options.bookmarkMs ?? 60_000,
      knowsInitialEvents: fault?.kind !== "ignore-initial-events",
      refusesInitialEvents: this.faults.refuseStreamingLists,
      show: wantsTable(message)
        ? (object: ApiObject) => asTable(request, object, this.#now())
        : (object: ApiObject) => object,
    };
    checkWatch(this.store, request, options);
    // Of all watches only streaming lists are compressed (v1.37).
    const gzip = request.query.get("sendInitialEvents") === "true" && acceptsGzip(message);
    response.writeHead(200, {
      "content-type": encoder.streamType,
      "cache-control": "no-cache, private",
      ...(gzip ? { "content-encoding": "gzip" } : {}),
    });
    response.flushHeaders();
    const wire = openWire(response, gzip);
    if (isByteFault(fault)) wire.arm(fault);
    if (fault?.kind === "prelude") wire.send(fault.body);
    const watch = serveWatch(this.store, request, wire, options);
    this.#watches.add(watch);
    wire.onClose(() => this.#watches.delete(watch));
  }

  #record(message: IncomingMessage, { verb, resource, query }: ApiRequest): void {
    this.seen.push({
      at: this.#now(),
      verb,
      resource: resource.plural,
      url: message.url ?? "/",
      query,
      headers: message.headers,
    });
    if (this.seen.length > requestLimit) this.seen.shift();
  }
}

/** Without a token and a client CA every client is authenticated. */
function guardOf({ host = "127.0.0.1", token, tls }: ApiServerOptions): Guard {
  const isCertified = ({ socket }: IncomingMessage) =>
    tls?.clientCA !== undefined && (socket as Socket & { authorized?: boolean }).authorized === true;
  const isOpen = token === undefined && tls?.clientCA === undefined;
  return {
    hosts: new Set([host, "127.0.0.1", "localhost", "::1"]),
    isKnown: (message) =>
      isOpen || isCertified(message) || (token !== undefined && hasToken(message, token())),
  };
}

/** An empty OpenAPI v2 document: kubectl then reports unknown kinds itself. */
function answerNoDefinitions(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" });
  response.end();
}

function forbidden({ verb, resource }: ApiRequest): Failure {
  return new Failure(403, "Forbidden", `${resource.plural} is forbidden: cannot ${verb}`);
}

function resourceFor(kind: string, apiVersion?: string): Resource {
  const resource = resourceOfKind(kind, apiVersion);
  if (!resource) {
    const known = [...new Set(resources.map((each) => each.kind))].join(", ");
    throw new Failure(404, "NotFound", `the playground API has no ${kind}; supported kinds: ${known}`);
  }
  return resource;
}
