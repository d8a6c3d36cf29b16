// Relays among clients and backends that mean no good: floods, resets, silence, forged sources, and a loop that is late.
import { createSocket, type Socket as Datagrams } from "node:dgram";
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { Balancer } from "./balancer.ts";
import type { RelayOptions } from "./relay.ts";
import { Room } from "./room.ts";
import { openTcpRelay } from "./tcp.ts";
import { openUdpRelay } from "./udp.ts";

const host = "127.0.0.1";
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

describe("TCP relay", () => {
  it("does not take a late look for a dead backend", async () => {
    const backend = await serve((socket) => socket.end("here"));
    const attempts: number[] = [];
    const relay = await tcp({
      choose: (_, attempt) => {
        attempts.push(attempt);
        // Whatever else the process has to do: the kernel connects meanwhile, and then the time is up.
        setImmediate(() => burn(120));
        return { address: host, port: backend };
      },
      dialMs: [50, 50, 50],
    });
    expect(await answer(relay.port)).toBe("here");
    expect(attempts).toEqual([0]);
  });

  it("passes a break on as a break: half an answer is not taken for a whole one", async () => {
    const backend = await serve((socket) => {
      socket.write("half of it", () => setTimeout(() => socket.resetAndDestroy(), 20));
    });
    const relay = await tcp({ choose: () => ({ address: host, port: backend }) });
    await expect(answer(relay.port)).rejects.toThrow("ECONNRESET");
    await expect.poll(() => relay.open()).toBe(0);
  });

  it("tells a backend of a client that broke off", async () => {
    let seen = "nothing";
    const backend = await serve((socket) => {
      socket.resume();
      socket.on("error", (error: NodeJS.ErrnoException) => {
        seen = error.code ?? "";
      });
      socket.write("hello");
    });
    const relay = await tcp({ choose: () => ({ address: host, port: backend }) });
    const client = await connected(relay.port);
    await new Promise((resolve) => client.once("data", resolve));
    client.resetAndDestroy();
    await expect.poll(() => seen).toBe("ECONNRESET");
    await expect.poll(() => relay.open()).toBe(0);
  });

  it("survives a storm of resets, and has nothing open behind it", async () => {
    const backend = await serve((socket) => void socket.pipe(socket));
    const room = new Room(4000);
    const relay = await tcp({ choose: () => ({ address: host, port: backend }), room });
    await Promise.all(
      Array.from({ length: 500 }, async (_, i) => {
        const client = await connected(relay.port);
        if (i % 2 === 0) client.write("?");
        client.resetAndDestroy();
      }),
    );
    await expect.poll(() => relay.open(), { timeout: 5000 }).toBe(0);
    expect([room.has(4000), room.has(4001)]).toEqual([true, false]);
    expect(await answer(relay.port, "still")).toBe("still");
  });

  it("keeps no more than a window of what nobody reads", async () => {
    let sent = 0;
    const chunk = Buffer.alloc(1 << 16);
    const backend = await serve((socket) => {
      const pour = () => {
        do sent += chunk.length;
        while (socket.write(chunk));
      };
      socket.on("drain", pour);
      pour();
    });
    const relay = await tcp({ choose: () => ({ address: host, port: backend }) });
    const client = await connected(relay.port);
    client.pause();
    await sleep(300);
    const filled = sent;
    await sleep(300);
    expect(sent).toBe(filled);
    // Send and receive buffers of the kernel on both sides of the relay: nothing piles up in between.
    expect(filled / 1e6).toBeLessThan(32);
  });

  it("gives a Service under a flood half of the room, and the others the rest", async () => {
    const backend = await serve((socket) => void socket.pipe(socket));
    const options = { choose: () => ({ address: host, port: backend }), room: new Room(40) };
    const [flooded, other] = [await tcp(options), await tcp(options)];
    const flood = await Promise.all(Array.from({ length: 50 }, () => connected(flooded.port)));
    await expect.poll(() => flood.filter(({ destroyed }) => !destroyed).length).toBe(10);
    expect(flooded.open()).toBe(10);
    expect(await answer(other.port, "served")).toBe("served");
    for (const client of flood) client.destroy();
    await expect.poll(() => flooded.open()).toBe(0);
    expect(await answer(flooded.port, "again")).toBe("again");
  });
});

describe("UDP relay", () => {
  it("forgets clients that nobody ever answered, when many come, and keeps the others", async () => {
    const answering = await datagrams((socket, data, from) => {
      if (String(data) !== "forged") socket.send(data, from.port, from.address);
    });
    const relay = await udp({ choose: () => ({ address: host, port: answering }), limit: 20 });
    const client = await bound();
    expect(await echoed(client, relay.port, "first")).toBe("first");
    for (let i = 0; i < 100; i++) (await bound()).send("forged", relay.port, host);
    await expect.poll(() => relay.open()).toBe(20);
    expect(await echoed(await bound(), relay.port, "newcomer")).toBe("newcomer");
    expect(await echoed(client, relay.port, "same flow")).toBe("same flow");
  });

  it("turns away newcomers when everybody is answered, and gives all room back at its end", async () => {
    const answering = await datagrams((socket, data, from) => socket.send(data, from.port, from.address));
    const room = new Room(8);
    const relay = await udp({ choose: () => ({ address: host, port: answering }), room });
    for (let i = 0; i < 4; i++) expect(await echoed(await bound(), relay.port, "x")).toBe("x");
    (await bound()).send("one too many", relay.port, host);
    await sleep(50);
    expect(relay.open()).toBe(4);
    await relay.close(true);
    expect([room.has(8), room.has(9)]).toEqual([true, false]);
  });

  it("tries another backend after a refusal", async () => {
    const answering = await datagrams((socket, data, from) => socket.send(data, from.port, from.address));
    const gone = createSocket("udp4");
    await new Promise<void>((resolve) => gone.bind(0, host, () => resolve()));
    const dead = gone.address().port;
    await new Promise<void>((resolve) => gone.close(() => resolve()));
    let chosen = 0;
    const relay = await udp({
      choose: () => ({ address: host, port: chosen++ === 0 ? dead : answering }),
    });
    const client = await bound();
    client.send("lost", relay.port, host);
    await expect.poll(() => [chosen, relay.open()]).toEqual([1, 0]);
    expect(await echoed(client, relay.port, "found")).toBe("found");
  });
});

describe("balancer", () => {
  it("forgets pins whose time is over, so that passers-by do not fill it", () => {
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

type Some = Partial<RelayOptions> & Pick<RelayOptions, "choose">;

async function tcp({ dialMs = [1000], ...more }: Some & { readonly dialMs?: readonly number[] }) {
  const relay = await openTcpRelay({ host, port: 0, limit: 1000, room: new Room(50_000), dialMs, ...more });
  closers.push(() => relay.close(true));
  return relay;
}

async function udp(more: Some) {
  const relay = await openUdpRelay({
    host,
    port: 0,
    limit: 1000,
    room: new Room(50_000),
    idleMs: 60_000,
    ...more,
  });
  closers.push(() => relay.close(true).catch(() => {}));
  return relay;
}

function serve(onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) =>
    onConnection(socket.on("error", () => {})),
  );
  closers.push(() => server.close());
  return new Promise((resolve) => {
    server.listen({ port: 0, host, backlog: 1024 }, () =>
      resolve((server.address() as { port: number }).port),
    );
  });
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const client = connect({ host, port }, () => resolve(client));
    client.on("error", reject);
    closers.push(() => client.destroy());
  });
}

/** Everything that comes back until the other side ends; rejects when it breaks off. */
async function answer(port: number, question = ""): Promise<string> {
  const client = await connected(port);
  client.end(question);
  return Buffer.concat((await client.toArray()) as Buffer[]).toString();
}

function datagrams(
  onMessage: (
    socket: Datagrams,
    data: Buffer,
    from: { readonly address: string; readonly port: number },
  ) => void,
): Promise<number> {
  const socket = createSocket("udp4");
  socket.on("message", (data, from) => onMessage(socket, data, from));
  closers.push(() => socket.close());
  return new Promise((resolve) => socket.bind(0, host, () => resolve(socket.address().port)));
}

function bound(): Promise<Datagrams> {
  const socket = createSocket("udp4");
  closers.push(() => socket.close());
  return new Promise((resolve) => socket.bind(0, host, () => resolve(socket)));
}

function echoed(client: Datagrams, port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    client.once("message", (data) => resolve(String(data)));
    client.send(text, port, host);
  });
}

function burn(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
