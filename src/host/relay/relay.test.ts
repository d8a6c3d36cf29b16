// Relays on real sockets of the loopback interface.
import { createSocket } from "node:dgram";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { tcpRelay, to, udpRelay } from "../../../test/support/relays.ts";
import {
  answer,
  blackHole,
  connected,
  datagram,
  host,
  serveTcp,
  serveUdp,
  tcpEcho,
  udpClient,
  udpEcho,
  until,
  unusedPort,
} from "../../../test/support/sockets.ts";
import { HostError } from "../error.ts";
import { Balancer, type RelayBackend } from "./balancer.ts";

describe("TCP relay", () => {
  it("21/30 keeps half-closed connections: what the backend still sends after the client's FIN arrives", async () => {
    const megabyte = Buffer.alloc(1 << 20, 7);
    const backend = await serveTcp((socket) => {
      socket.resume();
      socket.on("end", () => socket.end(megabyte));
    });
    const relay = await tcpRelay({ choose: to(backend) });
    const received = await answer(relay.port, "question");
    expect(received.length).toBe(megabyte.length);
  });

  it("21/15 carries 10 MB each way intact", async () => {
    const payload = Buffer.from(new Uint8Array(10 << 20).map((_, i) => (i * 31) & 255));
    const backend = await tcpEcho();
    const relay = await tcpRelay({ choose: to(backend) });
    expect((await answer(relay.port, payload)).equals(payload)).toBe(true);
  });

  it("21/14 tries another backend when one refuses, and closes the client when all do", async () => {
    const backend = await serveTcp((socket) => socket.end("here"));
    const dead = await unusedPort();
    const outcomes: string[] = [];
    const relay = await tcpRelay({
      choose: (_, attempt) => ({ address: host, port: attempt === 0 ? dead : backend }),
      dialMs: [250, 500],
      onOutcome: (outcome) => outcomes.push(outcome),
    });
    expect(String(await answer(relay.port))).toBe("here");
    const hopeless = await tcpRelay({
      choose: to(dead),
      onOutcome: (outcome) => outcomes.push(outcome),
    });
    expect(String(await answer(hopeless.port))).toBe("");
    const empty = await tcpRelay({ choose: () => null });
    expect(String(await answer(empty.port))).toBe("");
    expect(outcomes).toEqual(["forwarded", "failed"]);
  });

  it("21/14 tries another backend when one does not respond in time, and closes the client when none does", async () => {
    const backend = await serveTcp((socket) => socket.end("here"));
    const hole = await blackHole();
    const attempts: number[] = [];
    const relay = await tcpRelay({
      choose: (_, attempt) => {
        attempts.push(attempt);
        return { address: host, port: attempt === 0 ? hole : backend };
      },
      dialMs: [50, 60_000],
    });
    expect(String(await answer(relay.port))).toBe("here");
    const hopeless = await tcpRelay({ choose: to(hole), dialMs: [20, 40] });
    const start = performance.now();
    expect(String(await answer(hopeless.port))).toBe("");
    expect(performance.now() - start).toBeGreaterThan(50);
    expect(attempts).toEqual([0, 1]);
  });

  it("21/26 closes open connections on both sides with `cut`, and keeps them without", async () => {
    const closed: string[] = [];
    const backend = await serveTcp((socket) => {
      socket.write("hello");
      socket.resume().on("end", () => closed.push("backend"));
    });
    for (const cut of [true, false]) {
      const relay = await tcpRelay({ choose: to(backend) });
      const client = await connected(relay.port);
      await new Promise((resolve) => client.once("data", resolve));
      expect(relay.open()).toBe(1);
      const ended = new Promise((resolve) => client.once("close", resolve));
      await relay.close(cut);
      if (cut) await ended;
      expect(client.destroyed).toBe(cut);
      await expect(refused(relay.port)).resolves.toBe(true);
    }
    await expect.poll(() => closed).toEqual(["backend"]);
  });

  it("21/27 reports which address cannot be bound and why", async () => {
    const relay = await tcpRelay({ choose: () => null });
    const again = tcpRelay({ choose: () => null, port: relay.port });
    await expect(again).rejects.toThrow(HostError);
    await expect(again).rejects.toThrow(/another program listens there/);
  });
});

describe("UDP relay", () => {
  it("21/17 21/18 answers each of 100 clients with its own datagrams, whole up to 65,507 bytes", async () => {
    const backend = await udpEcho();
    const relay = await udpRelay({ choose: to(backend) });
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) => sendRequest(relay.port, Buffer.from(`client ${i}`))),
    );
    expect(answers.map(String)).toEqual(Array.from({ length: 100 }, (_, i) => `client ${i}`));
    expect(relay.open()).toBe(100);
    expect((await sendRequest(relay.port, Buffer.alloc(65_507, 1))).length).toBe(65_507);
  });

  it("that cannot be opened leaves no descriptor", async () => {
    const relay = await udpRelay({ choose: () => null });
    const descriptors = () => readdirSync("/proc/self/fd").length;
    const before = descriptors();
    for (let i = 0; i < 5; i++)
      await expect(udpRelay({ choose: () => null, port: relay.port })).rejects.toThrow("another program");
    await expect.poll(descriptors).toBe(before);
  });

  it("21/17 drops an idle client, and serves no more than the limit", async () => {
    const backend = await udpEcho();
    const relay = await udpRelay({ choose: to(backend), limit: 1, idleMs: 2000 });
    await sendRequest(relay.port, Buffer.from("a"));
    await expect(sendRequest(relay.port, Buffer.from("b"), 100)).rejects.toThrow("no answer");
    await expect.poll(() => relay.open()).toBe(0);
    expect(String(await sendRequest(relay.port, Buffer.from("c")))).toBe("c");
  });
});

describe("an idle UDP client", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  it("21/17 is dropped unless it or its backend sends something; then it gets a new socket", async () => {
    const sockets: number[] = [];
    let send: (text: string) => void = () => {};
    const backend = await serveUdp((data, reply, from) => {
      sockets.push(from.port);
      send = reply;
      if (String(data) !== "unanswered") reply(data);
    });
    const relay = await udpRelay({ choose: to(backend), idleMs: 250 });
    const client = await udpClient();
    await datagram(client, relay.port, "first");
    vi.advanceTimersByTime(200);
    client.send("unanswered", relay.port, host);
    await until(() => sockets.length === 2);
    vi.advanceTimersByTime(200);
    const received = new Promise((resolve) => client.once("message", resolve));
    send("from the backend");
    await received;
    vi.advanceTimersByTime(200);
    expect(relay.open()).toBe(1);
    vi.advanceTimersByTime(50);
    expect(relay.open()).toBe(0);
    await datagram(client, relay.port, "again");
    expect(sockets.map((port) => port === sockets[0])).toEqual([true, true, false]);
  });
});

describe("balancer", () => {
  const backends = [1, 2, 3].map((port) => ({ address: host, port }));

  it("21/11 takes turns: each backend twice in six, in one order, which an unchanged set does not restart", () => {
    const balancer = new Balancer({ order: "turn", random: () => 0.3, now: () => 0 });
    balancer.set(backends, null);
    const first = [0, 1, 2].map(() => balancer.choose("x")!.port);
    expect(new Set(first)).toEqual(new Set([1, 2, 3]));
    expect(balancer.choose("x")!.port).toBe(first[0]);
    balancer.set([...backends].reverse(), null);
    expect(balancer.choose("x")!.port).toBe(first[1]);
  });

  it("21/11 shuffles other backends, and begins with the first of them", () => {
    let dice = 0;
    const balancer = new Balancer({ order: "turn", random: () => dice, now: () => 0 });
    const order = (...set: typeof backends) => {
      balancer.set(set, null);
      return set.map(() => balancer.choose("x")!.port);
    };
    const [one, two, three] = backends as [RelayBackend, RelayBackend, RelayBackend];
    expect(order(one, two, three)).toEqual([2, 3, 1]);
    for (const _ of [1, 2]) balancer.choose("x");
    expect(order(one, two)).toEqual([2, 1]);
    dice = 0.99;
    expect(order(one, two, three)).toEqual([1, 2, 3]);
  });

  it("21/12 21/28 pins a client, sliding, until the backend leaves or the time-out changes", () => {
    let now = 0;
    const balancer = new Balancer({ order: "turn", random: () => 0, now: () => now });
    balancer.set(backends, 10);
    const pinned = balancer.choose("x")!;
    for (let i = 0; i < 5; i++) {
      now += 9_000;
      expect(balancer.choose("x")).toEqual(pinned);
    }
    now += 10_001;
    expect(balancer.choose("x")).not.toEqual(pinned);
    const next = balancer.choose("x")!;
    balancer.set(
      backends.filter(({ port }) => port !== next.port),
      10,
    );
    expect(balancer.choose("x")).not.toEqual(next);
    const again = balancer.choose("x")!;
    const instead = balancer.choose("x", true);
    expect(instead).not.toEqual(again);
    expect(balancer.choose("x")).toEqual(instead);
    balancer.set([], 10);
    expect(balancer.choose("x")).toBeNull();
  });

  it.each([20, null])("21/28 unpins a client when the time-out becomes %s", (seconds) => {
    const balancer = new Balancer({ order: "turn", random: () => 0, now: () => 0 });
    balancer.set(backends, 10);
    const pinned = balancer.choose("x");
    expect(balancer.choose("x")).toEqual(pinned);
    balancer.set(backends, seconds);
    expect(balancer.choose("x")).not.toEqual(pinned);
  });
});

function refused(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once("connect", () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", () => resolve(true));
  });
}

function sendRequest(port: number, data: Buffer, waitMs = 30_000): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = createSocket("udp4");
    const timer = setTimeout(() => {
      socket.close();
      reject(new Error("no answer"));
    }, waitMs);
    socket.on("message", (answer) => {
      clearTimeout(timer);
      socket.close();
      resolve(answer);
    });
    socket.send(data, port, host);
  });
}
