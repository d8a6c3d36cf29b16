// Relays with hostile clients and backends: floods, resets, no responses, forged sources, and a blocked event loop.
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { tcpRelay, to, udpRelay } from "../../../test/support/relays.ts";
import {
  answer,
  connected,
  datagram,
  host,
  serveTcp,
  serveUdp,
  tcpEcho,
  udpClient,
  udpEcho,
  unusedPort,
} from "../../../test/support/sockets.ts";
import { Balancer } from "./balancer.ts";
import { FdBudget } from "./fd-budget.ts";

describe("TCP relay", () => {
  it("does not treat a late event loop as a dead backend", async () => {
    const backend = await serveTcp((socket) => socket.end("here"));
    const attempts: number[] = [];
    const relay = await tcpRelay({
      choose: (_, attempt) => {
        attempts.push(attempt);
        // Blocks the event loop: the kernel connects meanwhile, and then the timeout expires.
        setImmediate(() => burn(120));
        return { address: host, port: backend };
      },
      dialMs: [50, 50, 50],
    });
    expect(String(await answer(relay.port))).toBe("here");
    expect(attempts).toEqual([0]);
  });

  it("forwards a reset as a reset: a truncated response does not look complete", async () => {
    const backend = await serveTcp((socket) => {
      socket.write("half of it", () => setTimeout(() => socket.resetAndDestroy(), 20));
    });
    const relay = await tcpRelay({ choose: to(backend) });
    await expect(answer(relay.port)).rejects.toThrow("ECONNRESET");
    await expect.poll(() => relay.open()).toBe(0);
  });

  it("resets the backend's connection when the client resets its own", async () => {
    let seen = "nothing";
    const backend = await serveTcp((socket) => {
      socket.resume();
      socket.on("error", (error: NodeJS.ErrnoException) => {
        seen = error.code ?? "";
      });
      socket.write("hello");
    });
    const relay = await tcpRelay({ choose: to(backend) });
    const client = await connected(relay.port);
    await new Promise((resolve) => client.once("data", resolve));
    client.resetAndDestroy();
    await expect.poll(() => seen).toBe("ECONNRESET");
    await expect.poll(() => relay.open()).toBe(0);
  });

  it("survives a flood of resets, and leaves nothing open", async () => {
    const backend = await tcpEcho();
    const room = new FdBudget(4000);
    const relay = await tcpRelay({ choose: to(backend), room });
    await Promise.all(
      Array.from({ length: 500 }, async (_, i) => {
        const client = await connected(relay.port);
        if (i % 2 === 0) client.write("?");
        client.resetAndDestroy();
      }),
    );
    await expect.poll(() => relay.open()).toBe(0);
    expect([room.has(4000), room.has(4001)]).toEqual([true, false]);
    expect(String(await answer(relay.port, "still"))).toBe("still");
  });

  it("buffers no more than a window of unread data", async () => {
    let sent = 0;
    const chunk = Buffer.alloc(1 << 16);
    const backend = await serveTcp((socket) => {
      const pour = () => {
        do sent += chunk.length;
        while (socket.write(chunk));
      };
      socket.on("drain", pour);
      pour();
    });
    const relay = await tcpRelay({ choose: to(backend) });
    const client = await connected(relay.port);
    client.pause();
    // Send and receive buffers of the kernel on both sides of the relay: the relay itself buffers nothing.
    const most = 32e6;
    await expect.poll(() => sent).toBeGreaterThan(0);
    for (let before = -1; sent !== before && sent < most; await sleep(300)) before = sent;
    expect(sent).toBeLessThan(most);
  });

  it("gives a flooded Service half of the budget, and the others the rest", async () => {
    const backend = await tcpEcho();
    const options = { choose: to(backend), room: new FdBudget(40) };
    const [flooded, other] = [await tcpRelay(options), await tcpRelay(options)];
    const flood = await Promise.all(Array.from({ length: 50 }, () => connected(flooded.port)));
    await expect.poll(() => flood.filter(({ destroyed }) => !destroyed).length).toBe(10);
    expect(flooded.open()).toBe(10);
    expect(String(await answer(other.port, "served"))).toBe("served");
    for (const client of flood) client.destroy();
    await expect.poll(() => flooded.open()).toBe(0);
    expect(String(await answer(flooded.port, "again"))).toBe("again");
  });
});

describe("UDP relay", () => {
  it("drops clients without a response when there are many, and keeps the others", async () => {
    const answering = await serveUdp((data, reply) => {
      if (String(data) !== "forged") reply(data);
    });
    const relay = await udpRelay({ choose: to(answering), limit: 20 });
    const client = await udpClient();
    expect(String(await datagram(client, relay.port, "first"))).toBe("first");
    for (let i = 0; i < 100; i++) (await udpClient()).send("forged", relay.port, host);
    await expect.poll(() => relay.open()).toBe(20);
    expect(String(await datagram(await udpClient(), relay.port, "newcomer"))).toBe("newcomer");
    expect(String(await datagram(client, relay.port, "same flow"))).toBe("same flow");
  });

  it("refuses new clients when all have responses, and releases the budget at its end", async () => {
    const answering = await udpEcho();
    const room = new FdBudget(8);
    const relay = await udpRelay({ choose: to(answering), room });
    for (let i = 0; i < 4; i++) expect(String(await datagram(await udpClient(), relay.port, "x"))).toBe("x");
    (await udpClient()).send("one too many", relay.port, host);
    await sleep(50);
    expect(relay.open()).toBe(4);
    await relay.close(true);
    expect([room.has(8), room.has(9)]).toEqual([true, false]);
  });

  it("tries another backend after a refusal", async () => {
    const answering = await udpEcho();
    const dead = await unusedPort();
    let chosen = 0;
    const relay = await udpRelay({
      choose: () => ({ address: host, port: chosen++ === 0 ? dead : answering }),
    });
    const client = await udpClient();
    client.send("lost", relay.port, host);
    await expect.poll(() => [chosen, relay.open()]).toEqual([1, 0]);
    expect(String(await datagram(client, relay.port, "found"))).toBe("found");
  });
});

describe("balancer", () => {
  it("drops expired pins, so that they do not accumulate", () => {
    let now = 0;
    const balancer = new Balancer({ order: "turn", random: () => 0, now: () => now });
    balancer.set([{ address: host, port: 1 }], 10);
    for (let i = 0; i < 1000; i++) {
      now += 100;
      balancer.choose(`client ${i}`);
    }
    expect(balancer.remembered).toBeLessThan(110);
  });
});

function burn(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
