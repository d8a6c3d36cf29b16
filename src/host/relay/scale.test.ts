// Relays with many clients at once: everybody is served, nobody beyond the limit, and memory stays in bounds.
import { createSocket } from "node:dgram";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { Room } from "./room.ts";
import { openTcpRelay } from "./tcp.ts";
import { openUdpRelay } from "./udp.ts";

const host = "127.0.0.1";
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

describe("relays at scale", () => {
  it("carry 1,000 TCP connections at once, and turn away those beyond the limit", async () => {
    const backend = createServer((socket) => void socket.on("error", () => {}).pipe(socket));
    closers.push(() => backend.close());
    const port = await new Promise<number>((resolve) => {
      backend.listen({ port: 0, host, backlog: 4096 }, () =>
        resolve((backend.address() as { port: number }).port),
      );
    });
    const choose = () => ({ address: host, port });
    const relay = await openTcpRelay({
      host,
      port: 0,
      limit: 1000,
      room: new Room(50_000),
      dialMs: [5000],
      choose,
    });
    closers.push(() => relay.close(true));
    const before = process.memoryUsage().rss;
    const clients = await Promise.all(Array.from({ length: 1000 }, () => connected(relay.port)));
    const answers = await Promise.all(clients.map((client, i) => exchange(client, `${i}`)));
    expect(answers.every((answer, i) => answer === `${i}`)).toBe(true);
    expect(relay.open()).toBe(1000);
    const late = await connected(relay.port);
    expect(await new Promise((resolve) => late.resume().once("close", () => resolve("closed")))).toBe(
      "closed",
    );
    expect(relay.open()).toBe(1000);
    // Client, relay and backend together: four sockets a connection.
    expect((process.memoryUsage().rss - before) / 1e6).toBeLessThan(150);
  }, 60_000);

  it("remember 10,000 UDP clients at once, each with a socket of its own", async () => {
    const backend = createSocket("udp4");
    const sources = new Set<number>();
    backend.on("message", (data, from) => {
      sources.add(from.port);
      backend.send(data, from.port, from.address);
    });
    closers.push(() => backend.close());
    await new Promise<void>((resolve) => backend.bind(0, host, () => resolve()));
    const choose = () => ({ address: host, port: backend.address().port });
    const relay = await openUdpRelay({
      host,
      port: 0,
      limit: 16_384,
      room: new Room(50_000),
      idleMs: 300_000,
      choose,
    });
    closers.push(() => relay.close(true));
    const before = process.memoryUsage().rss;
    const taken = new Set<number>();
    while (taken.size < 10_000) {
      const ports = await Promise.all(Array.from({ length: 100 }, () => asked(relay.port)));
      for (const port of ports) taken.add(port);
    }
    expect(relay.open()).toBe(taken.size);
    expect(sources.size).toBe(taken.size);
    expect((process.memoryUsage().rss - before) / 1e6).toBeLessThan(250);
  }, 120_000);
});

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const client = connect({ host, port }, () => resolve(client));
    client.once("error", reject);
    closers.push(() => client.destroy());
  });
}

function exchange(client: Socket, text: string): Promise<string> {
  return new Promise((resolve) => {
    client.once("data", (data) => resolve(String(data)));
    client.write(text);
  });
}

/** The port of a client that was answered; the client is gone by then. */
function asked(port: number): Promise<number> {
  return new Promise((resolve) => {
    const client = createSocket("udp4");
    const again = setInterval(() => client.send("?", port, host), 2000);
    client.once("message", () => {
      clearInterval(again);
      const own = client.address().port;
      client.close(() => resolve(own));
    });
    client.send("?", port, host);
  });
}
