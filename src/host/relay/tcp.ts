// Forwards TCP connections: dials off the accept loop, keeps half-closed connections, and never buffers more than a window.
import { createServer, type Server, Socket } from "node:net";
import type { RelayBackend } from "./balancer.ts";
import { cannotListen, type Relay, type RelayOptions } from "./relay.ts";

export type TcpRelayOptions = RelayOptions & {
  /** How long each attempt to connect may take, in milliseconds; as many attempts as there are numbers. */
  readonly dialMs: readonly number[];
};

/** Rejects with HostError when the address cannot be listened on. */
export async function openTcpRelay(options: TcpRelayOptions): Promise<Relay> {
  const open = new Set<Socket>();
  const server = createServer({ ...habits, pauseOnConnect: true }, (client) => {
    if (options.room.has(2)) void forward(client, options, open);
    else turnAway(client, options);
  });
  server.maxConnections = Math.min(options.limit, options.room.share >> 1);
  await listening(server, options);
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : options.port;
  return {
    port,
    open: () => open.size,
    hasLostListener: (tcp) => !tcp.has(port),
    retain: () => {},
    close: (cut) =>
      new Promise((resolve) => {
        if (cut) for (const client of open) client.destroy();
        server.close(() => resolve());
        if (!cut) resolve();
      }),
  };
}

/** On both sides: detects a peer that disappeared; an idle one may stay connected. */
const habits = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: 15_000,
} as const;

/** Connections that wait to be accepted; the kernel takes no more than net.core.somaxconn, 4096 unless changed. */
const backlog = 4096;

function listening(server: Server, options: TcpRelayOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => reject(cannotListen("TCP", options, cause)));
    const { host, port } = options;
    server.listen({ host, port, backlog, ipv6Only: host.includes(":") }, () => {
      server.removeAllListeners("error");
      // Running out of descriptors is not fatal: the kernel keeps the queue, and we continue to accept.
      server.on("error", () => {});
      resolve();
    });
  });
}

function turnAway(client: Socket, options: TcpRelayOptions): void {
  client.destroy();
  options.onOutcome?.("failed", null);
}

async function forward(client: Socket, options: TcpRelayOptions, open: Set<Socket>): Promise<void> {
  open.add(client);
  options.room.take(2);
  client.once("close", () => {
    open.delete(client);
    options.room.give(2);
  });
  client.on("error", () => client.destroy());
  const dialled = await dial(client, options);
  if (dialled === null || client.destroyed) {
    dialled?.socket.destroy();
    return turnAway(client, options);
  }
  options.onOutcome?.("forwarded", dialled.backend);
  carry(client, dialled.socket);
  carry(dialled.socket, client);
}

/** Forwards a FIN as a FIN and a reset as a reset: a truncated response must not look complete. */
function carry(from: Socket, to: Socket): void {
  from.on("error", () => to.resetAndDestroy());
  from.once("close", () => {
    if (!from.readableEnded) to.destroy();
  });
  from.pipe(to);
}

type Dialled = { readonly socket: Socket; readonly backend: RelayBackend };

async function dial(client: Socket, { choose, dialMs }: TcpRelayOptions): Promise<Dialled | null> {
  const from = client.remoteAddress;
  // Closed before it was handled.
  if (from === undefined) return null;
  for (const [attempt, ms] of dialMs.entries()) {
    const backend = choose(from, attempt);
    if (backend === null) return null;
    const socket = await connect(backend, ms);
    if (socket !== null) return { socket, backend };
    if (client.destroyed) return null;
  }
  return null;
}

function connect({ address, port }: RelayBackend, ms: number): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = new Socket(habits);
    // A busy event loop runs timers before sockets: check again for a connection after the sockets.
    const timer = setTimeout(() => setImmediate(() => give(null)), ms);
    let isGiven = false;
    const give = (result: Socket | null) => {
      if (isGiven) return;
      isGiven = true;
      clearTimeout(timer);
      socket.removeAllListeners("error");
      if (result === null) {
        socket.on("error", () => {});
        socket.destroy();
      }
      resolve(result);
    };
    socket.once("error", () => give(null));
    socket.connect({ host: address, port, ...habits }, () => give(socket));
  });
}
