// A small HTTP server with limits against slow and numerous clients: new connections replace the oldest.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Readable, Stream } from "node:stream";

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | Readable;
};

export type Respond = (request: IncomingMessage) => Answer | Promise<Answer>;

/** Where to listen. `both`: a wildcard address of either family accepts clients of both, as Go's "tcp" does. */
export type ListenAddress = {
  readonly host: string;
  readonly port: number;
  readonly families: "both" | "own";
};

export type HttpServer = {
  readonly port: number;
  /** How many connections are open now. */
  readonly open: () => number;
  /** Stops listening and cuts all connections. */
  readonly close: () => Promise<void>;
};

export type HttpLimits = {
  /** Connections beyond this displace the oldest ones. */
  readonly connections: number;
  readonly onDisplaced: () => void;
  /** How long a client may take no byte of an answer; absent: 15 s. */
  readonly stalledMs?: number;
};

const headersTimeoutMs = 5_000;
const requestTimeoutMs = 15_000;
const stalledMs = 15_000;
const keepAliveTimeoutMs = 65_000;
const checkEveryMs = 2_500;
const maxHeaderBytes = 16 * 1024;

/** Listens, or rejects with the system's reason. */
export async function listen(
  address: ListenAddress,
  respond: Respond,
  limits: HttpLimits,
): Promise<HttpServer> {
  const server = createServer(
    {
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: keepAliveTimeoutMs,
      connectionsCheckingInterval: checkEveryMs,
      maxHeaderSize: maxHeaderBytes,
    },
    (request, response) => void answer(respond, request, response, limits.stalledMs ?? stalledMs),
  );
  const connections = limitConnections(server, limits);
  await bind(server, address);
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : address.port,
    open: () => connections.size,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Go's answer to an unknown path. */
export const notFound: Answer = plainText(404, "404 page not found\n");

export function plainText(status: number, body: string): Answer {
  const headers = { "Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff" };
  return { status, headers, body };
}

/** The path without query; the whole target when it is no path. */
export function pathOf(request: IncomingMessage): string {
  const target = request.url ?? "/";
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}

async function answer(
  respond: Respond,
  request: IncomingMessage,
  response: ServerResponse,
  mostStalledMs: number,
): Promise<void> {
  try {
    const { status, headers, body } = await respond(request);
    // An answer that the client does not read stays in memory. Until here the page itself may take its time, as a profile does.
    response.setTimeout(mostStalledMs, () => response.destroy());
    response.writeHead(
      status,
      body instanceof Stream ? headers : { ...headers, "Content-Length": Buffer.byteLength(body) },
    );
    if (body instanceof Stream) {
      // What is produced for a client ends with the client.
      response.once("close", () => body.destroy());
      body.on("error", () => response.destroy()).pipe(response);
    } else response.end(request.method === "HEAD" ? undefined : body);
  } catch {
    // A defect in one page must not stop the other pages; the client receives an error.
    if (response.headersSent) response.destroy();
    else response.writeHead(500).end();
  }
}

/** A Set remembers the order of arrival: its first member is the oldest connection. */
function limitConnections(server: Server, limits: HttpLimits): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    if (open.size <= limits.connections) return;
    const [oldest] = open;
    oldest!.destroy();
    open.delete(oldest!);
    limits.onDisplaced();
  });
  return open;
}

const wildcards = ["0.0.0.0", "::", ""];

async function bind(server: Server, { host, port, families }: ListenAddress): Promise<void> {
  if (families === "own" || !wildcards.includes(host)) {
    await bindTo(server, { host, port, ipv6Only: host.includes(":") });
    return;
  }
  try {
    await bindTo(server, { host: "::", port, ipv6Only: false });
  } catch (error) {
    // A node without IPv6 has no IPv6 socket to share.
    if (!hasCode(error, "EAFNOSUPPORT", "EADDRNOTAVAIL")) throw error;
    await bindTo(server, { host: "0.0.0.0", port, ipv6Only: false });
  }
}

function bindTo(server: Server, options: { host: string; port: number; ipv6Only: boolean }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(options, () => {
      server.off("error", reject);
      // From here on an error is a connection that could not be accepted, e.g. for want of descriptors.
      server.on("error", () => {});
      resolve();
    });
  });
}

function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}
