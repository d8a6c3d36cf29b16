// The relays of userspace mode on real sockets of the loopback interface, kept in step with Routes.
import { createSocket } from "node:dgram";
import { createServer } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../../test/support/routed.ts";
import {
  answer,
  blackHole,
  closeAfterTest,
  connected,
  datagram,
  exchange,
  host,
  serveTcp,
  serveUdp,
  tcpEcho,
  udpClient,
  udpEcho,
  until,
} from "../../../../test/support/sockets.ts";
import { FdBudget } from "../../../host/relay/fd-budget.ts";
import { listeningPorts } from "../../../host/relay/listening.ts";
import { RelayPorts } from "../../../host/relay/ports.ts";
import type { Problem } from "../../../model/problem.ts";
import type { ServicePort } from "../../../model/snapshot.ts";
import { conflicts } from "../../../routing/conflicts.ts";
import type { Routes } from "../../../routing/routes.ts";
import { bindAddressOf } from "../bind-address.ts";
import { Relays } from "./relays.ts";
import { mustNotBindLoopback } from "./setup.ts";

/** Relays of one family, and the Routes they follow. */
class Bench {
  readonly relays: Relays;
  readonly room = new FdBudget(10_000);
  /** TCP ports that the kernel no longer lists. */
  readonly aborted = new Set<number>();
  #routes: Routes | null = null;
  #now = 0;

  constructor(range: { first: number; last: number } | null = null) {
    const ports = new RelayPorts(range, () => 0);
    this.relays = new Relays({
      family: "ipv4",
      bind: host,
      ports,
      room: this.room,
      udpIdleMs: 30_000,
      now: () => this.#now,
      random: () => 0,
      listening: () => new Set([...listeningPorts("ipv4")!].filter((port) => !this.aborted.has(port))),
    });
    closeAfterTest(() => this.relays.close());
  }

  pass(seconds: number): void {
    this.#now += seconds * 1000;
  }

  /** As a Sync does: open, and when the rules are written, close. */
  async sync(...ports: readonly ServicePort[]): Promise<void> {
    const routes = routed(ports, ipv4Settings, this.#routes);
    this.#routes = routes;
    const { keys: deaf } = await this.relays.closeLostRelays();
    const keys = new Set([...routes.changed, ...this.relays.unfinished, ...deaf]);
    await this.relays.grow(routes, keys);
    await this.relays.shrink(routes, keys);
  }

  conflicts(port: ServicePort): Problem[] {
    return conflicts(this.#routes!, this.#routes!.ports.get(port.key)!);
  }

  portOf(port: ServicePort): number {
    return [...this.relays.socketsOf(port.key).relayPorts.values()][0] ?? 0;
  }
}

describe("relays", () => {
  it("21/1 do not listen on loopback addresses, with the earlier message", () => {
    for (const address of ["127.0.0.1", "::1"])
      expect(() => mustNotBindLoopback(address)).toThrow("cannot proxy on localhost");
    for (const address of ["0.0.0.0", "::", "192.168.0.2"]) mustNotBindLoopback(address);
    expect(bindAddressOf("ipv4", "0.0.0.0")).toBeNull();
    expect(bindAddressOf("ipv4", "192.168.0.2")).toBe("192.168.0.2");
    expect(bindAddressOf("ipv6", "192.168.0.2")).toBeNull();
  });

  it("21/3 have distinct ports of the range, and one that finds none gets the next that is free", async () => {
    const first = await freeRange(3);
    const bench = new Bench({ first, last: first + 2 });
    const services = ["a", "b", "c", "d"].map((name, i) =>
      servicePort(`shop/${name}`, { clusterIP: `172.30.0.${i + 1}` }),
    );
    await bench.sync(...services);
    const ports = services.map((port) => bench.portOf(port)).sort((a, b) => a - b);
    expect(ports).toEqual([0, first, first + 1, first + 2]);
    expect(bench.relays.problems().map(({ message }) => message)).toEqual([
      "port allocation failed; there are no remaining ports left to allocate in the accepted range",
    ]);
    await bench.sync(...services.slice(1));
    await bench.sync(...services.slice(1));
    expect(bench.relays.problems()).toEqual([]);
    expect(services.slice(1).every((port) => bench.portOf(port) > 0)).toBe(true);
  });

  it("21/9 reserve NodePorts: no other program can listen there until the Service is gone", async () => {
    const nodePort = await freeRange(1);
    const bench = new Bench();
    for (const protocol of ["tcp", "udp"] as const) {
      await bench.sync(servicePort("shop/web", { protocol, nodePort }));
      expect(await canListen(protocol, nodePort)).toBe(false);
      await bench.sync();
      expect(await canListen(protocol, nodePort)).toBe(true);
    }
  });

  it("21/10 report a place that another program holds, serve everything else, and take it when it is free", async () => {
    const nodePort = await freeRange(1);
    const intruder = createServer();
    await new Promise<void>((resolve) => intruder.listen(nodePort, "0.0.0.0", () => resolve()));
    const bench = new Bench();
    const web = servicePort("shop/web", { nodePort });
    await bench.sync(web, servicePort("shop/other", { clusterIP: "172.30.0.9" }));
    expect(bench.relays.problems()).toMatchObject([
      {
        object: "Service shop/web",
        message: `Cannot listen on TCP 0.0.0.0 port ${nodePort}: another program listens there`,
      },
    ]);
    expect([...bench.relays.socketsOf(web.key).taken]).toEqual([`node/tcp/${nodePort}`]);
    expect(bench.portOf(web)).toBeGreaterThan(0);
    await new Promise((resolve) => intruder.close(resolve));
    await bench.sync(web);
    expect(bench.relays.problems()).toEqual([]);
    expect([...bench.relays.socketsOf(web.key).taken]).toEqual([]);
  });

  it("give back the room they took, and none for a place that another program held", async () => {
    const nodePort = await freeRange(1);
    await serveTcp(() => {}, { host: "0.0.0.0", port: nodePort });
    const bench = new Bench();
    await bench.sync(
      servicePort("shop/web", { nodePort, externalIPs: ["127.0.0.1"], port: await freeRange(1) }),
    );
    expect([bench.room.has(9998), bench.room.has(9999)]).toEqual([true, false]);
    await bench.sync();
    expect([bench.room.has(10_000), bench.room.has(10_001)]).toEqual([true, false]);
  });

  it("count connections, UDP clients and what they turn away, by endpoint", async () => {
    const bench = new Bench();
    const [one, two] = [`${host}:${await tcpEcho()}`, `${host}:${await tcpEcho()}`];
    const web = (...endpoints: readonly string[]) =>
      servicePort("shop/web", { endpoints: endpoints.map((at) => endpoint(at)) });
    const dns = servicePort("shop/dns", {
      protocol: "udp",
      clusterIP: "172.30.0.2",
      endpoints: [endpoint(`${host}:${await udpEcho()}`)],
    });
    await bench.sync(web(one, two), dns);
    const door = bench.portOf(web());
    for (let i = 0; i < 4; i++) await exchange(await connected(door), "x");
    const client = await udpClient();
    for (let i = 0; i < 3; i++) await datagram(client, bench.portOf(dns), "x");
    const counts = (key: string) => bench.relays.counts(true).get(key);
    expect(counts(web().key)).toEqual({
      connections: 4,
      refused: 0,
      outOfRange: 0,
      endpoints: new Map([
        [one, 2],
        [two, 2],
      ]),
    });
    // One client is one flow, however many datagrams it sends.
    expect(counts(dns.key)).toMatchObject({ connections: 1, refused: 0 });
    expect(bench.relays.counts(false).get(dns.key)!.endpoints).toBeNull();
    await bench.sync(web(one), dns);
    expect(counts(web().key)!.endpoints).toEqual(new Map([[one, 2]]));
    await bench.sync(web(one, two), dns);
    expect(counts(web().key)!.endpoints!.get(two)).toBe(0);
    await bench.sync(web(), dns);
    const refused = await connected(bench.portOf(web()));
    refused.on("error", () => {});
    await expect.poll(() => counts(web().key)).toMatchObject({ connections: 4, refused: 1, outOfRange: 0 });
    await bench.sync(dns);
    expect(counts(web().key)).toBeUndefined();
  });

  it("count clients outside the source ranges apart from those without an endpoint", async () => {
    const bench = new Bench();
    const web = servicePort("shop/web", {
      loadBalancerIPs: ["203.0.113.9"],
      sourceRanges: ["192.0.2.0/24"],
      endpoints: [endpoint(`${host}:${await tcpEcho()}`)],
    });
    await bench.sync(web);
    const guarded = bench.relays.socketsOf(web.key).relayPorts.get("guarded")!;
    (await connected(guarded)).on("error", () => {});
    await expect
      .poll(() => bench.relays.counts(false).get(web.key))
      .toEqual({ connections: 0, refused: 0, outOfRange: 1, endpoints: null });
  });

  it("21/11 choose in turn, in an order that only other endpoints change", async () => {
    const backends = [await backend("a"), await backend("b"), await backend("c")];
    const bench = new Bench();
    const web = servicePort("shop/web", { endpoints: backends.map(at) });
    await bench.sync(web);
    const endpoints = (times: number) => endpointsAt(bench.portOf(web), times);
    const order = await endpoints(6);
    expect(order.slice(0, 3)).toEqual(order.slice(3));
    expect([...order].sort()).toEqual(["a", "a", "b", "b", "c", "c"]);
    await endpoints(1);
    await bench.sync({ ...web, affinity: null });
    expect(await endpoints(2)).toEqual(order.slice(1, 3));
  });

  it("21/13 21/21 pin clients for the timeout of the Service, also when its endpoints came first", async () => {
    const backends = [await backend("a"), await backend("b")];
    const bench = new Bench();
    const web = servicePort("shop/web", { endpoints: backends.map(at) });
    await bench.sync(web);
    const port = bench.portOf(web);
    await bench.sync({ ...web, affinity: { seconds: 10 } });
    expect(bench.portOf(web)).toBe(port);
    const [pinned] = await endpointsAt(port, 1);
    bench.pass(9);
    expect(await endpointsAt(port, 2)).toEqual([pinned, pinned]);
    bench.pass(11);
    expect(await endpointsAt(port, 1)).not.toEqual([pinned]);
  });

  it("21/14 try four times, with a longer timeout each time, and close a client without an endpoint that answers", async () => {
    const hole = await blackHole();
    const bench = new Bench();
    const web = servicePort("shop/web", { endpoints: [at(hole)] });
    await bench.sync(web);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    closeAfterTest(() => vi.useRealTimers());
    const client = await connected(bench.portOf(web));
    client.resume();
    for (const ms of [250, 500, 1000, 2000]) {
      await until(() => vi.getTimerCount() > 0);
      vi.advanceTimersByTime(ms - 1);
      expect(vi.getTimerCount()).toBe(1);
      vi.advanceTimersByTime(1);
    }
    await until(() => client.destroyed);
    expect([client.destroyed, vi.getTimerCount()]).toEqual([true, 0]);
  });

  it("21/10 two Services that claim one place: the first keeps it, the other is reported, and takes over when it is free", async () => {
    const nodePort = await freeRange(1);
    const [first, second] = [
      servicePort("shop/a", { nodePort, endpoints: [at(await backend("a"))] }),
      servicePort("shop/b", { nodePort, clusterIP: "172.30.0.9", endpoints: [at(await backend("b"))] }),
    ];
    const bench = new Bench();
    await bench.sync(first, second);
    expect(bench.relays.problems()).toEqual([]);
    expect(bench.conflicts(second)).toMatchObject([{ object: "Service shop/b" }]);
    expect(bench.conflicts(first)).toEqual([]);
    expect(await endpointsAt(bench.portOf(first), 1)).toEqual(["a"]);
    expect(bench.relays.state().held).toEqual([`node/tcp/${nodePort}`]);
    await bench.sync(second);
    expect(bench.conflicts(second)).toEqual([]);
    expect(await canListen("tcp", nodePort)).toBe(false);
  });

  it("21/21 stay open whatever changes but the Service itself", async () => {
    const [one, other] = [await freeRange(1), await freeRange(1)];
    const bench = new Bench();
    const web = servicePort("shop/web", { nodePort: one });
    await bench.sync(web);
    const port = bench.portOf(web);
    await bench.sync({ ...web, nodePort: other, externalIPs: ["192.168.99.5"] });
    expect(bench.portOf(web)).toBe(port);
    expect(await canListen("tcp", one)).toBe(true);
    expect(await canListen("tcp", other)).toBe(false);
  });

  it("21/16 close with their Service, but connections run on", async () => {
    const bench = new Bench();
    const web = servicePort("shop/web", { endpoints: [at(await tcpEcho())] });
    await bench.sync(web);
    const port = bench.portOf(web);
    const client = await connected(port);
    expect(await exchange(client, "before")).toBe("before");
    await bench.sync();
    expect(await exchange(client, "after")).toBe("after");
    await expect(connected(port)).rejects.toThrow("ECONNREFUSED");
  });

  it("take a UDP client to another endpoint as soon as its own has left", async () => {
    const [a, b] = [await udpBackend("a"), await udpBackend("b")];
    const bench = new Bench();
    const dns = servicePort("shop/dns", { protocol: "udp", endpoints: [at(a)] });
    await bench.sync(dns);
    const client = await udpClient();
    expect(String(await datagram(client, bench.portOf(dns), "?"))).toBe("a");
    await bench.sync({ ...dns, endpoints: [endpoint(`${host}:${b}`)] });
    expect(String(await datagram(client, bench.portOf(dns), "?"))).toBe("b");
  });

  it("are opened again, and places reserved again, where the kernel no longer lists them; connections run on", async () => {
    const nodePort = await freeRange(1);
    const bench = new Bench();
    const web = servicePort("shop/web", { nodePort, endpoints: [at(await tcpEcho())] });
    const dns = servicePort("shop/dns", { protocol: "udp", clusterIP: "172.30.0.9" });
    await bench.sync(web, dns);
    const [before, untouched] = [bench.portOf(web), bench.portOf(dns)];
    const client = await connected(before);
    await bench.sync(web, dns);
    expect(bench.portOf(web)).toBe(before);
    bench.aborted.add(before).add(nodePort);
    await bench.sync(web, dns);
    expect(bench.portOf(web)).not.toBe(before);
    expect(bench.portOf(dns)).toBe(untouched);
    expect(String(await answer(bench.portOf(web), "new"))).toBe("new");
    expect(await exchange(client, "old")).toBe("old");
    expect(await canListen("tcp", nodePort)).toBe(false);
    expect([bench.room.has(9995), bench.room.has(9996)]).toEqual([true, false]);
  });

  it("21/20 open nothing for SCTP, and its siblings do not mind", async () => {
    const bench = new Bench();
    const [sctp, tcp] = [
      servicePort("shop/tel:a", { protocol: "sctp" }),
      servicePort("shop/tel:b", { port: 81 }),
    ];
    await bench.sync(sctp, tcp);
    expect(bench.portOf(sctp)).toBe(0);
    expect(bench.portOf(tcp)).toBeGreaterThan(0);
    expect(bench.relays.problems()).toEqual([]);
  });
});

const at = (port: number) => endpoint(`${host}:${port}`);

/** Servers that send their name. */
const backend = (name: string) => serveTcp((socket) => socket.end(name));
const udpBackend = (name: string) => serveUdp((_, reply) => reply(name));

async function endpointsAt(port: number, times: number): Promise<string[]> {
  const answers: string[] = [];
  for (let i = 0; i < times; i++) {
    answers.push(String(await answer(port)));
  }
  return answers;
}

/** The first of so many neighbouring unused ports. */
async function freeRange(size: number): Promise<number> {
  for (let first = 20_000 + (process.pid % 5000); ; first += size) {
    const free = await Promise.all(Array.from({ length: size }, (_, i) => canListen("tcp", first + i)));
    if (free.every(Boolean) && !used.has(first)) {
      for (let i = 0; i < size; i++) used.add(first + i);
      return first;
    }
  }
}

const used = new Set<number>();

function canListen(protocol: "tcp" | "udp", port: number): Promise<boolean> {
  return new Promise((resolve) => {
    if (protocol === "tcp") {
      const server = createServer().once("error", () => resolve(false));
      server.listen(port, "0.0.0.0", () => server.close(() => resolve(true)));
    } else {
      const socket = createSocket("udp4").once("error", () => resolve(false));
      socket.bind(port, "0.0.0.0", () => socket.close(() => resolve(true)));
    }
  });
}
