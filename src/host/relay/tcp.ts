// Forwards TCP connections: dials off the accept loop, keeps half-closed connections, and never buffers more than a window.
import { createServer, type Server, Socket } from "node:net";
import { pipeline } from "node:stream";
import type { RelayBackend } from "./balancer.ts";
import { cannotListen, type Relay, type RelayOptions } from "./relay.ts";

export type TcpRelayOptions = RelayOptions & {
  /** How long each attempt to connect may take, in milliseconds; as many attempts as there are numbers. */
  readonly dialMs: readonly number[];
};

/** Rejects with HostError when the address cannot be listened on. */
export async function openTcpRelay(options: TcpRelayOptions): Promise<Relay> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (client) => {
    void forward(client, options, open);
  });
  server.maxConnections = options.limit;
  await listening(server, options);
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : options.port,
    open: () => open.size,
    retain: () => {},
    close: (cut) =>
      new Promise((resolve) => {
        if (cut) for (const client of open) client.destroy();
        server.close(() => resolve());
        if (!cut) resolve();
      }),
  };
}

/** Connections that wait to be accepted; the kernel takes no more than net.core.somaxconn, 4096 unless changed. */
const backlog = 4096;

function listening(server: Server, options: TcpRelayOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => reject(cannotListen("TCP", options, cause)));
    const { host, port } = options;
    server.listen({ host, port, backlog, ipv6Only: host.includes(":") }, () => {
      server.removeAllListeners("error");
      // Running out of descriptors is no reason to end: the kernel keeps the queue, and we go on accepting.
      server.on("error", () => {});
      resolve();
    });
  });
}

async function forward(client: Socket, options: TcpRelayOptions, open: Set<Socket>): Promise<void> {
  open.add(client);
  client.once("close", () => open.delete(client));
  client.on("error", () => client.destroy());
  const backend = await dial(client, options);
  if (backend === null || client.destroyed) {
    backend?.destroy();
    client.destroy();
    options.onOutcome?.("failed");
    return;
  }
  options.onOutcome?.("forwarded");
  join(client, backend);
}

/** The end of one direction is passed on; a break of either side breaks the other. */
function join(client: Socket, backend: Socket): void {
  pipeline(client, backend, () => {});
  pipeline(backend, client, () => {});
}

async function dial(client: Socket, { choose, dialMs }: TcpRelayOptions): Promise<Socket | null> {
  const from = client.remoteAddress ?? "";
  for (const [attempt, ms] of dialMs.entries()) {
    const backend = choose(from, attempt);
    if (backend === null) return null;
    const connected = await connect(backend, ms);
    if (connected !== null) return connected;
    if (client.destroyed) return null;
  }
  return null;
}

function connect({ address, port }: RelayBackend, ms: number): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = new Socket({ allowHalfOpen: true });
    const timer = setTimeout(() => give(null), ms);
    const give = (result: Socket | null) => {
      clearTimeout(timer);
      socket.removeAllListeners("error");
      if (result === null) {
        socket.on("error", () => {});
        socket.destroy();
      }
      resolve(result);
    };
    socket.once("error", () => give(null));
    socket.connect({ host: address, port, noDelay: true }, () => give(socket));
  });
}
