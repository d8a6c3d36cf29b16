// Servers and clients on loopback for tests of relays; whatever is opened is closed after the test.
import { randomInt } from "node:crypto";
import { createSocket, type Socket as Datagrams } from "node:dgram";
import { connect, createServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { onTestFinished } from "vitest";

export const host = "127.0.0.1";

/** What is opened last is closed first. */
export function closeAfterTest(close: () => unknown): void {
  onTestFinished(async () => void (await close()));
}

/** The port of a TCP server that lets clients close their side first. */
export function serveTcp(serve: (socket: Socket) => void, at = { host, port: 0 }): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => serve(socket.on("error", () => {})));
  closeAfterTest(() => server.close());
  return new Promise((resolve) => {
    server.listen({ ...at, backlog: 4096 }, () => resolve((server.address() as { port: number }).port));
  });
}

export const tcpEcho = () => serveTcp((socket) => void socket.pipe(socket));

/** The port of a UDP server that may answer through `reply`. */
export async function serveUdp(
  serve: (data: Buffer, reply: (data: Buffer | string) => void, from: { readonly port: number }) => void,
): Promise<number> {
  const socket = await udpClient();
  socket.on("message", (data, from) =>
    serve(data, (answer) => socket.send(answer, from.port, from.address), from),
  );
  return socket.address().port;
}

export const udpEcho = () => serveUdp((data, reply) => reply(data));

/** A port without a listener, and not one that the kernel chooses: another process would get it meanwhile. */
export async function unusedPort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_768);
    if ((await isFreeForTcp(port)) && (await isFreeForUdp(port))) return port;
  }
}

function isFreeForTcp(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}

function isFreeForUdp(port: number): Promise<boolean> {
  const socket = createSocket("udp4");
  return new Promise((resolve) => {
    socket.once("error", () => socket.close(() => resolve(false)));
    socket.bind(port, host, () => socket.close(() => resolve(true)));
  });
}

/** The port of a server that accepts no more connections: the kernel silently drops new ones. */
export async function blackHole(): Promise<number> {
  const worker = new Worker(
    `const server = require("node:net").createServer();
    server.listen({ host: ${JSON.stringify(host)}, port: 0, backlog: 1 }, () => {
      require("node:worker_threads").parentPort.postMessage(server.address().port);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`,
    { eval: true },
  );
  closeAfterTest(() => worker.terminate());
  const port = await new Promise<number>((resolve) => worker.once("message", resolve));
  // A backlog of one keeps two.
  for (const _ of [1, 2]) await connected(port);
  return port;
}

export function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const client = connect({ host, port }, () => resolve(client));
    client.on("error", reject);
    closeAfterTest(() => client.destroy());
  });
}

/** Sends data and returns the next data received. */
export function exchange(client: Socket, text: string): Promise<string> {
  return new Promise((resolve) => {
    client.once("data", (data) => resolve(String(data)));
    client.write(text);
  });
}

/** Everything that comes back until the other side ends; rejects when it breaks off. */
export async function answer(port: number, question: Buffer | string = ""): Promise<Buffer> {
  const client = await connected(port);
  client.end(question);
  return Buffer.concat((await client.toArray()) as Buffer[]);
}

export function udpClient(): Promise<Datagrams> {
  const socket = createSocket("udp4");
  closeAfterTest(() => socket.close());
  return new Promise((resolve) => socket.bind(0, host, () => resolve(socket)));
}

/** Sends a datagram and waits for one. */
export function datagram(client: Datagrams, port: number, data: Buffer | string): Promise<Buffer> {
  return new Promise((resolve) => {
    client.once("message", (reply) => resolve(reply));
    client.send(data, port, host);
  });
}

/** Waits for sockets with a limit, where the test controls the timers. */
export async function until(isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!isSo() && performance.now() < deadline) await nextTurn();
}
