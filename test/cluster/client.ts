// Speaks to the real API server from inside its network namespace, over TLS with a client certificate.
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { connect as secure } from "node:tls";
import type { Namespace } from "../kernel/netns.ts";
import { connectInside } from "../reference/foothold.ts";
import type { Pki } from "./pki.ts";

export type Answer = { readonly code: number; readonly body: Json };

// biome-ignore lint/suspicious/noExplicitAny: answers of the API are read by the tests as they are
export type Json = any;

/** A request; `body` is sent as JSON, or as a merge patch with PATCH by default. */
export type Client = (method: string, path: string, body?: unknown, contentType?: string) => Promise<Answer>;

export function apiClient(netns: Namespace, pki: Pki, address: string, port: number): Client {
  const [ca, key, cert] = [pki.ca, pki.admin.key, pki.admin.cert].map((file) => readFileSync(file));
  return (
    method,
    path,
    body,
    contentType = method === "PATCH" ? "application/merge-patch+json" : "application/json",
  ) =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? "" : JSON.stringify(body);
      const sent = request(
        {
          method,
          path,
          headers: {
            "content-type": contentType,
            "content-length": Buffer.byteLength(text),
            accept: "application/json",
          },
          createConnection: () =>
            secure({ socket: connectInside(netns, address, port), ca, key, cert, host: address }),
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("end", () =>
            resolve(answer(response.statusCode ?? 0, Buffer.concat(chunks).toString())),
          );
        },
      );
      sent.setTimeout(30_000, () => sent.destroy(new Error(`${method} ${path}: no answer for 30 s`)));
      sent.on("error", reject);
      sent.end(text);
    });
}

function answer(code: number, text: string): Answer {
  try {
    return { code, body: JSON.parse(text) };
  } catch {
    return { code, body: text };
  }
}
