// The HTTP server of the page: static files for every client of this machine, JSON only with a session.
import type { IncomingMessage } from "node:http";
import { type Answer, type HttpServer, listen, pathOf, type Respond } from "../observe/servers/http.ts";
import { bodyOf, queryOf } from "../observe/servers/router.ts";
import type { PageViews } from "../observe/status/page-views.ts";
import type { PageAddress } from "./address.ts";
import { fileAnswer, type PageFiles, securityHeaders } from "./files.ts";
import type { PageJson } from "./json.ts";
import { Sessions } from "./session.ts";

export type Page = {
  readonly files: PageFiles;
  /** Of each node, by name; the first is shown first. */
  readonly nodes: ReadonlyMap<string, PageViews>;
  readonly flags: string;
  /** Runs a command of the playground and returns its output; null: the page can only read. */
  readonly act: ((line: string) => Promise<readonly string[]>) | null;
};

export type OpenPage = {
  /** With the token: for the terminal of the user who opened it, and for nothing else. */
  readonly url: string;
  readonly port: number;
  readonly token: string;
  readonly close: () => Promise<void>;
};

const connectionLimit = 64;
const mostBodyCharacters = 10_000;

/** Rejects with the system's reason, for example when the port is taken. */
export async function openPage(page: Page, address: PageAddress): Promise<OpenPage> {
  const sessions = new Sessions();
  const limits = { connections: connectionLimit, onDisplaced: () => {} };
  const server: HttpServer = await listen({ ...address, families: "own" }, respond(page, sessions), limits);
  const host = address.host === "::1" ? "[::1]" : address.host;
  const { token } = sessions;
  // After `#`, so that no server, proxy or log receives it.
  const url = `http://${host}:${server.port}/#token=${token}`;
  return { url, token, port: server.port, close: server.close };
}

function respond(page: Page, sessions: Sessions): Respond {
  return async (request) => {
    const foreign = sessions.refuseForeign(request);
    if (foreign !== null) return json(foreign.status, { error: foreign.reason });
    const path = pathOf(request);
    if (!path.startsWith("/api/")) return staticAnswer(page.files, path, request);
    if (path === "/api/session") return signIn(sessions, request);
    const unknown = sessions.refuseUnknown(request);
    if (unknown !== null) return json(unknown.status, { error: unknown.reason });
    return apiAnswer(page, path.slice("/api/".length), request);
  };
}

function staticAnswer(files: PageFiles, path: string, request: IncomingMessage): Answer {
  if (request.method !== "GET" && request.method !== "HEAD") return notAllowed;
  return fileAnswer(files, path, request);
}

async function signIn(sessions: Sessions, request: IncomingMessage): Promise<Answer> {
  if (request.method !== "POST") return notAllowed;
  const cookie = sessions.open(await textField(request, "token"));
  if (cookie === null)
    return json(401, { error: "the token is wrong; open the address that turnout page prints" });
  const answer = json(200, {});
  return { ...answer, headers: { ...answer.headers, "Set-Cookie": cookie } };
}

async function apiAnswer(page: Page, view: string, request: IncomingMessage): Promise<Answer> {
  if (view === "act") return act(page, request);
  if (request.method !== "GET") return notAllowed;
  if (view === "page") return json(200, pageJson(page));
  const query = queryOf(request);
  const node = query.get("node");
  const views = node === null ? page.nodes.values().next().value : page.nodes.get(node);
  if (views === undefined) return json(404, { error: `there is no node ${JSON.stringify(node)}` });
  if (view === "events") return { status: 200, headers: eventHeaders, body: views.events() };
  const { status, body } = await views.answer(view, query);
  return { status, headers: jsonHeaders, body };
}

async function act({ act: run }: Page, request: IncomingMessage): Promise<Answer> {
  if (run === null) return json(404, { error: "this page can only read; actions exist in the playground" });
  if (request.method !== "POST") return notAllowed;
  return json(200, { lines: await run(await textField(request, "line")) });
}

/** Of the JSON in the body; empty where there is none. */
async function textField(request: IncomingMessage, name: string): Promise<string> {
  try {
    const value = JSON.parse(await bodyOf(request, mostBodyCharacters)) as Record<string, unknown> | null;
    const field = value?.[name];
    return typeof field === "string" ? field : "";
  } catch {
    return "";
  }
}

function pageJson({ nodes, flags, act: run }: Page): PageJson {
  return { nodes: [...nodes.keys()], flags, actions: run !== null };
}

const jsonHeaders = {
  ...securityHeaders,
  "Content-Type": "application/json; charset=utf-8",
  "Cache-Control": "no-store",
};

const eventHeaders = { ...jsonHeaders, "Content-Type": "text/event-stream; charset=utf-8" };

function json(status: number, value: unknown): Answer {
  return { status, headers: jsonHeaders, body: JSON.stringify(value) };
}

const notAllowed = json(405, { error: "the method is not allowed here" });
