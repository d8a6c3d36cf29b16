// HTTP requests made inside a namespace.
import { get, type IncomingHttpHeaders } from "node:http";
import { Socket } from "node:net";
import { connect, domainOf, SOCK_STREAM, socket } from "./libc.ts";
import type { Namespace } from "./netns.ts";

export type HttpAnswer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

/** The response to a GET of a URL with a plain address; null without a listener, or when none arrives in time. */
export function httpGet(
  netns: Namespace,
  url: string,
  headers: Readonly<Record<string, string>> = {},
  timeoutMs = 10_000,
): Promise<HttpAnswer | null> {
  const { hostname, port } = new URL(url);
  const address = hostname.replace(/[[\]]/g, "");
  const fd = netns.inside(() => socket(domainOf(address), SOCK_STREAM, 0));
  connect(fd, { address, port: Number(port) });
  return new Promise((resolve) => {
    const request = get(url, { headers, createConnection: () => new Socket({ fd }) }, (response) => {
      response.setEncoding("utf8");
      let body = "";
      response.on("data", (text: string) => {
        body += text;
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
    });
    const timer = setTimeout(() => request.destroy(), timeoutMs);
    request.on("close", () => clearTimeout(timer));
    request.on("error", () => resolve(null));
  });
}
