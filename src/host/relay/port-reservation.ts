// Holds an address and port for a Frontend, so that no other program listens where rules take the traffic away.
import { createSocket } from "node:dgram";
import { createServer } from "node:net";
import { cannotListen } from "./relay.ts";

export type PortReservation = {
  /** Whether the port is no longer reserved because the kernel aborted its socket. `tcp`: ports with a listener. */
  readonly isLost: (tcp: ReadonlySet<number>) => boolean;
  /** Releases the port. */
  readonly release: () => Promise<void>;
};

/** Rejects with HostError when another process listens there. */
export function reservePort(protocol: "tcp" | "udp", host: string, port: number): Promise<PortReservation> {
  return protocol === "tcp" ? reserveTcp(host, port) : reserveUdp(host, port);
}

/** Connections that bypass the rules are closed. */
function reserveTcp(host: string, port: number): Promise<PortReservation> {
  return new Promise((resolve, reject) => {
    const server = createServer((client) => client.destroy());
    server.once("error", (cause) => reject(cannotListen("TCP", { host, port }, cause)));
    // Later errors, such as running out of descriptors, are ignored: the port stays reserved.
    server.on("error", () => {});
    server.listen({ host, port, ipv6Only: host.includes(":") }, () =>
      resolve({
        isLost: (tcp) => !tcp.has(port),
        release: () => new Promise((done) => server.close(() => done())),
      }),
    );
  });
}

function reserveUdp(host: string, port: number): Promise<PortReservation> {
  return new Promise((resolve, reject) => {
    const isIPv6 = host.includes(":");
    const socket = createSocket({ type: isIPv6 ? "udp6" : "udp4", ipv6Only: isIPv6 });
    socket.once("error", (cause) => {
      // Node.js keeps the descriptor of a socket that cannot bind.
      socket.close();
      reject(cannotListen("UDP", { host, port }, cause));
    });
    socket.bind({ address: host, port }, () => {
      socket.removeAllListeners("error");
      socket.on("error", () => {});
      resolve({
        // An aborted UDP socket keeps an explicitly bound port.
        isLost: () => false,
        release: () => new Promise((done) => socket.close(() => done())),
      });
    });
  });
}
