// The static files of the page, compressed by the build.
import type { IncomingMessage } from "node:http";
import { gunzipSync } from "node:zlib";
import { type Answer, notFound } from "../observe/servers/http.ts";

export type PageFile = {
  readonly type: string;
  /** Compressed by gzip, in base64. */
  readonly gzip: string;
  readonly etag: string;
};

/** By path: `/`, `/app.js`. */
export type PageFiles = Readonly<Record<string, PageFile>>;

/** Scripts, styles and connections of this server only; no other page may embed this one. */
export const securityHeaders = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
} as const;

export function fileAnswer(files: PageFiles, path: string, request: IncomingMessage): Answer {
  const file = Object.hasOwn(files, path) ? files[path] : undefined;
  if (file === undefined) return { ...notFound, headers: { ...notFound.headers, ...securityHeaders } };
  // Asked every time: another version may be served at the same address tomorrow.
  const headers = {
    ...securityHeaders,
    ETag: file.etag,
    "Cache-Control": "no-cache",
    Vary: "Accept-Encoding",
  };
  if (request.headers["if-none-match"] === file.etag) return { status: 304, headers, body: "" };
  const compressed = Buffer.from(file.gzip, "base64");
  const takesGzip = /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? ""));
  return {
    status: 200,
    headers: { ...headers, "Content-Type": file.type, ...(takesGzip ? { "Content-Encoding": "gzip" } : {}) },
    body: takesGzip ? compressed : gunzipSync(compressed),
  };
}
