// Relays with many clients: all are served up to the limit, none beyond it, and memory stays bounded.
import { createSocket } from "node:dgram";
import { describe, expect, it } from "vitest";
import { tcpRelay, to, udpRelay } from "../../../test/support/relays.ts";
import { connected, exchange, host, serveUdp, tcpEcho } from "../../../test/support/sockets.ts";

describe("relays at scale", () => {
  it("carry 1,000 concurrent TCP connections, and refuse those beyond the limit", async () => {
    const relay = await tcpRelay({ choose: to(await tcpEcho()), limit: 1000, dialMs: [5000] });
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

  it("keep 10,000 concurrent UDP clients, each with its own socket", async () => {
    const sources = new Set<number>();
    const backend = await serveUdp((data, reply, from) => {
      sources.add(from.port);
      reply(data);
    });
    const relay = await udpRelay({ choose: to(backend), limit: 16_384, idleMs: 300_000 });
    const before = process.memoryUsage().rss;
    const taken = new Set<number>();
    while (taken.size < 10_000) {
      const ports = await Promise.all(Array.from({ length: 100 }, () => portSeen(relay.port)));
      for (const port of ports) taken.add(port);
    }
    expect(relay.open()).toBe(taken.size);
    expect(sources.size).toBe(taken.size);
    expect((process.memoryUsage().rss - before) / 1e6).toBeLessThan(250);
  }, 120_000);
});

/** The port of a client that was answered; the client is gone by then. */
function portSeen(port: number): Promise<number> {
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
