// The program in every pod: answers over HTTP and UDP, and says who answered and whom it saw.
import { createSocket, type Socket } from "node:dgram";
import { createServer } from "node:http";
import type { Server } from "node:net";
import { type Family, familyOf, joinHostPort } from "../../src/model/address.ts";

/** Code that must be synchronous runs in the pod's namespace. */
export type Inside = <T>(action: () => T) => T;

export type EchoPort = { readonly protocol: "TCP" | "UDP"; readonly port: number };

/** What an answer says. */
export type Greeting = {
  readonly pod: string;
  readonly node: string;
  readonly endpoint: string;
  readonly saw: string;
};

/** Serves until the returned function is called. */
export function startEcho(
  who: { readonly pod: string; readonly node: string; readonly addresses: Readonly<Record<Family, string>> },
  ports: readonly EchoPort[],
  inside: Inside,
): () => void {
  const greet = (port: number, saw: string): string => {
    const sender = plain(saw);
    const endpoint = joinHostPort(who.addresses[familyOf(sender)], port);
    const greeting: Greeting = { pod: who.pod, node: who.node, endpoint, saw: sender };
    return `${JSON.stringify(greeting)}\n`;
  };
  const servers = ports.map(({ protocol, port }) =>
    protocol === "TCP" ? serveHttp(port, greet, inside) : serveUdp(port, greet, inside),
  );
  return () => {
    for (const stop of servers) stop();
  };
}

type Greet = (port: number, saw: string) => string;

// Without a host `listen` makes its socket at once, and so in the namespace this thread is in.
function serveHttp(port: number, greet: Greet, inside: Inside): () => void {
  const server: Server = createServer((request, response) => {
    response.writeHead(200, { "content-type": "application/json", connection: "close" });
    response.end(greet(port, request.socket.remoteAddress ?? ""));
  });
  server.on("error", () => {});
  inside(() => server.listen(port));
  return () => void server.close();
}

function serveUdp(port: number, greet: Greet, inside: Inside): () => void {
  const socket = openUdp("udp6");
  socket.on("message", (_, { address, port: from }) => socket.send(greet(port, address), from, address));
  inside(() => socket.bind(port));
  return () => socket.close();
}

/** A socket that looks names up without waiting, so that `bind` happens at once. */
export function openUdp(type: "udp4" | "udp6"): Socket {
  const socket = createSocket({
    type,
    lookup: (name, _, done) => done(null, name, type === "udp4" ? 4 : 6),
  });
  socket.on("error", () => {});
  return socket;
}

/** Sockets of both families show IPv4 addresses as `::ffff:10.0.0.1`. */
function plain(address: string): string {
  return address.replace(/^::ffff:/, "");
}
