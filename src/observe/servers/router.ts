// Finds the page for a path: exact paths first, then prefixes, else Go's 404.
import type { IncomingMessage } from "node:http";
import { type Answer, notFound, pathOf, type Respond } from "./http.ts";

export type Page = (request: IncomingMessage) => Answer | Promise<Answer>;

/** Paths that end in `/` match everything below them that has no page of its own. */
export type Pages = ReadonlyMap<string, Page>;

export function routed(pages: Pages): Respond {
  const prefixes = [...pages.keys()].filter((path) => path.endsWith("/"));
  return (request) => {
    const path = pathOf(request);
    const exact = pages.get(path);
    if (exact !== undefined) return exact(request);
    const prefix = prefixes.find((one) => path.startsWith(one));
    return prefix === undefined ? notFound : pages.get(prefix)!(request);
  };
}

/** The parameters after `?`. */
export function queryOf(request: IncomingMessage): URLSearchParams {
  const target = request.url ?? "";
  const at = target.indexOf("?");
  return new URLSearchParams(at < 0 ? "" : target.slice(at + 1));
}

/** The body as text; rejects when it is longer than `limit` characters. */
export async function bodyOf(request: IncomingMessage, limit: number): Promise<string> {
  let text = "";
  request.setEncoding("utf8");
  for await (const chunk of request) {
    text += chunk;
    if (text.length > limit) throw new Error(`the body is longer than ${limit} characters`);
  }
  return text;
}
