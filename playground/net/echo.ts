// The echo server of every pod: replies over HTTP and UDP with its name and the client address.
import { createSocket, type Socket } from "node:dgram";
import { createServer } from "node:http";
import type { Server } from "node:net";
import { type Family, familyOf, joinHostPort } from "../../src/model/address.ts";

/** Runs synchronous code in the network namespace of a pod. */
export type Inside = <T>(action: () => T) => T;

export type EchoPort = { readonly protocol: "TCP" | "UDP"; readonly port: number };

/** The content of a reply. */
export type EchoReply = {
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
  const reply = (port: number, saw: string): string => {
    const sender = plain(saw);
    const endpoint = joinHostPort(who.addresses[familyOf(sender)], port);
    const answer: EchoReply = { pod: who.pod, node: who.node, endpoint, saw: sender };
    return `${JSON.stringify(answer)}\n`;
  };
  const servers = ports.map(({ protocol, port }) =>
    protocol === "TCP" ? serveHttp(port, reply, inside) : serveUdp(port, reply, inside),
  );
  return () => {
    for (const stop of servers) stop();
  };
}

type Reply = (port: number, saw: string) => string;

// Without a host, `listen` creates its socket synchronously, in the current namespace of the thread.
function serveHttp(port: number, reply: Reply, inside: Inside): () => void {
  const server: Server = createServer((request, response) => {
    response.writeHead(200, { "content-type": "application/json", connection: "close" });
    response.end(reply(port, request.socket.remoteAddress ?? ""));
  });
  server.on("error", () => {});
  inside(() => server.listen(port));
  return () => void server.close();
}

function serveUdp(port: number, reply: Reply, inside: Inside): () => void {
  const socket = openUdp("udp6");
  socket.on("message", (_, { address, port: from }) => socket.send(reply(port, address), from, address));
  inside(() => socket.bind(port));
  return () => socket.close();
}

/** A socket with a synchronous lookup, so that `bind` is synchronous too. */
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
