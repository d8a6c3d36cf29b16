// The status socket, for root only, from start-up to exit: answers `turnout status` and similar commands.
import { chmodSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { dirname } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { isMainThread } from "node:worker_threads";
import type { Log } from "../log/log.ts";
import { type PageViews, pageHeader, pagePrefix, viewError } from "./page-views.ts";
import { type Answers, defaultStatusSocket, heapPath, type StreamedAnswers } from "./status.ts";

type Soon<T> = T | Promise<T>;

/** The functions that answer, by path. A piece that is undefined is not sent: it lets other work run. */
export type Answering = {
  readonly [Path in keyof Answers]: (query: URLSearchParams) => Soon<Answers[Path]>;
} & {
  readonly [Path in keyof StreamedAnswers]: (
    query: URLSearchParams,
  ) => Soon<Iterable<StreamedAnswers[Path] | undefined>>;
} & {
  /** Views of the page, for `turnout page`: loaded at the first request. Absent while the daemon starts. */
  readonly page?: () => Promise<PageViews>;
};

/** Optional: a socket that cannot be served is logged only. */
export class StatusSocket {
  readonly #path: string;
  readonly #log: Log;
  /** Those of start-up first, then those of the running daemon. */
  #answering: Answering;
  #close: (() => void) | null = null;
  #loggedReason: string | null = null;

  /** An empty path: no socket. */
  constructor(path: string, first: Answering, log: Log) {
    this.#path = path;
    this.#answering = first;
    this.#log = log;
  }

  /** From now on these answer. Tried again where it was not possible before: another daemon may have ended. */
  handTo(answering: Answering): Promise<void> {
    this.#answering = answering;
    return this.open();
  }

  async open(): Promise<void> {
    if (this.#path === "" || this.#close !== null) return;
    try {
      this.#close = await serveStatus(this.#path, () => this.#answering);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason === this.#loggedReason) return;
      this.#loggedReason = reason;
      this.#log.info("Cannot serve the status socket; turnout status does not work", {
        socket: this.#path,
        reason,
        hint: "mount a writable directory there, or set TURNOUT_STATUS_SOCKET to another path, or to nothing",
      });
    }
  }

  close(): void {
    this.#close?.();
    this.#close = null;
  }
}

/** Serves until the returned function is called. The folder and the socket are for root only. */
export async function serveStatus(path: string, answering: () => Answering): Promise<() => void> {
  makeFolder(dirname(path));
  if (existsSync(path) && (await isAnswered(path))) throw new Error(`${path} is served by another process`);
  rmSync(path, { force: true });
  const server = createServer(({ url = "/" }, response) => {
    const [route = "/", query = ""] = url.split("?");
    if (route === heapPath) {
      void sendHeap(response);
      return;
    }
    // A defect in one answer must not stop the daemon.
    const broken = () => response.destroy();
    const answers = answering();
    const parameters = new URLSearchParams(query);
    if (route === "/cluster" || route === "/history") {
      stream(response, answers[route](parameters)).catch(broken);
      return;
    }
    if (route.startsWith(pagePrefix)) {
      const view = route.slice(pagePrefix.length);
      sendView(response, answers.page, view, parameters).catch(broken);
      return;
    }
    const answer = Object.hasOwn(answers, route) ? answers[route as keyof Answers] : answers["/"];
    send(response, answer(parameters)).catch(broken);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    forRootOnly(() => server.listen(path, resolve));
  });
  chmodSync(path, 0o600);
  server.unref();
  return () => {
    server.closeAllConnections();
    server.close();
    rmSync(path, { force: true });
  };
}

/** The kubelet mounts volumes with mode 0777. A directory that was configured keeps its mode. */
function makeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (folder === dirname(defaultStatusSocket)) chmodSync(folder, 0o700);
}

/** Binds the socket without a moment in which another user could connect. Threads other than the main one have no umask. */
function forRootOnly(bind: () => void): void {
  const before = isMainThread ? process.umask(0o177) : null;
  bind();
  if (before !== null) process.umask(before);
}

/** Loaded only here: it is rarely used. The daemon does nothing else while the snapshot is taken. */
async function sendHeap(response: ServerResponse): Promise<void> {
  const { getHeapSnapshot } = await import("node:v8");
  response.writeHead(200, { "content-type": "application/octet-stream" });
  getHeapSnapshot()
    .on("error", () => response.destroy())
    .pipe(response);
}

async function send(response: ServerResponse, answer: Soon<unknown>): Promise<void> {
  const text = JSON.stringify(await answer);
  response.writeHead(200, { "content-type": "application/json" });
  response.end(`${text}\n`);
}

async function sendView(
  response: ServerResponse,
  page: Answering["page"],
  view: string,
  query: URLSearchParams,
): Promise<void> {
  const views = (await page?.()) ?? null;
  if (views !== null && view === "events") {
    const events = views.events();
    response.writeHead(200, { "content-type": "text/event-stream", [pageHeader]: "1" });
    response.once("close", () => events.destroy());
    events.pipe(response);
    return;
  }
  const { status, body } = await (views?.answer(view, query) ?? viewError(503, "the daemon is starting"));
  response.writeHead(status, { "content-type": "application/json", [pageHeader]: "1" });
  response.end(body);
}

/** A line for each piece; yields to the event loop between two of them, and waits for slow readers. */
async function stream(response: ServerResponse, pieces: Soon<Iterable<unknown>>): Promise<void> {
  const gone = new Promise((resolve) => response.once("close", resolve));
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  for (const piece of await pieces) {
    if (response.destroyed) return;
    if (piece === undefined) await nextTurn();
    else if (response.write(`${JSON.stringify(piece)}\n`)) await nextTurn();
    else await Promise.race([gone, new Promise((resolve) => response.once("drain", resolve))]);
  }
  response.end();
}

/** A socket that an ended process left refuses connections. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path, () => resolve(true));
    probe.once("error", () => resolve(false));
    probe.once("connect", () => probe.destroy());
  });
}
