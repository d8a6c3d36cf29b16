// Passes connections on to the API server in its network namespace, and counts the bytes it sends.
import { createServer, type Server, type Socket } from "node:net";
import type { Namespace } from "../kernel/netns.ts";
import { connectInside } from "../reference/foothold.ts";

export type ApiRelay = {
  readonly port: number;
  /** Bytes from the API server so far, with TLS and HTTP. */
  readonly received: () => number;
  close(): void;
};

/** Listens on loopback, or on a given listener, possibly in another namespace. */
export async function relayTo(
  netns: Namespace,
  address: string,
  port: number,
  listener: Server | null = null,
): Promise<ApiRelay> {
  const sockets = new Set<Socket>();
  let received = 0;
  const pass = (client: Socket) => {
    const server = connectInside(netns, address, port);
    server.on("data", (bytes: Buffer) => {
      received += bytes.length;
    });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  };
  const server = listener ?? createServer();
  server.on("connection", pass);
  if (listener === null) await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : 0,
    received: () => received,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
