// The world itself: packets arrive unchanged, checks distinguish the results, and nothing is left over.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { families, joinHostPort } from "../../src/model/address.ts";
import { inFamily, type Place, places } from "../places.ts";
import { type ExpectedOutcome, parsePackets } from "../scenarios.ts";
import { createNamespace, ownNamespaceNames, reasonToSkip, sweepNamespaces } from "./netns.ts";
import { check } from "./probe.ts";
import { resultText, tryOnce } from "./send-packet.ts";
import { createWorld, type World } from "./world.ts";

const reason = reasonToSkip();
const everywhere = Object.keys(places) as Place[];
const pods = ["L1", "L2", "R1", "R2"] as const;

describe("the world", () => {
  let world: World;
  beforeAll(async () => {
    if (reason === null) world = await createWorld();
  });
  afterAll(() => world?.close());

  for (const family of families) {
    for (const protocol of ["tcp", "udp", "sctp"] as const) {
      it(`carries ${protocol} from every place to every pod over ${family}, unchanged`, async ({ skip }) => {
        if (reason !== null) return skip(reason);
        const pairs = everywhere.flatMap((from) => pods.map((to) => [from, to] as const));
        const results = await Promise.all(
          pairs.map(([from, to]) => {
            const address = inFamily(places[to], family);
            const source = from === "X" ? inFamily(places.X, family) : null;
            return tryOnce({ netns: world.at[from], poller: world.poller, source }, protocol, {
              address,
              port: 8080,
            });
          }),
        );
        const received = results.map((result) =>
          result.kind === "answered" ? [result.endpoint, result.saw] : resultText(result),
        );
        const expected = results.map((result, i) => [
          joinHostPort(inFamily(places[pairs[i]![1]], family), 8080),
          result.kind === "answered" ? result.client : null,
        ]);
        expect(received).toEqual(expected);
      });
    }
  }

  it("shows what no proxy touches as pass", async ({ skip }) => {
    if (reason !== null) return skip(reason);
    const table = `
      pod     10.180.0.2   172.30.0.1:80/tcp      pass
      pod     10.180.0.2   172.30.0.1:80/udp      pass
      pod     10.180.0.2   172.30.0.1:80/sctp     pass
      pod     10.180.0.2   172.30.0.1/icmp        pass
      pod     10.180.1.1   172.30.0.1:80/tcp      pass
      node    192.168.0.2  198.51.100.1:80/tcp    pass
      outside 192.168.0.3  172.30.0.1:80/tcp      pass
      outside 203.0.113.2  192.168.99.1:80/tcp    pass
      outside 203.0.113.2  192.168.0.2:30000/tcp  pass
      outside 203.0.113.2  192.168.1.2:30000/tcp  pass
      node    192.168.0.2  192.168.0.2:30000/tcp  pass
      node    127.0.0.1    127.0.0.1:30000/tcp    pass`;
    expect(await disagreements(world, table)).toEqual([]);
  });

  it("distinguishes reject, drop, keep and masquerade, and reports unexpected ones", async ({ skip }) => {
    if (reason !== null) return skip(reason);
    world.node.feed(handMadeRules, "nft", "-f", "-");
    const table = `
      ipv4: pod     10.180.0.2   172.30.0.1:80/tcp  reject
      ipv4: pod     10.180.0.2   172.30.0.1:80/udp  reject
      ipv4: node    192.168.0.2  172.30.0.1:80/tcp  reject
      ipv4: node    192.168.0.2  172.30.0.1:80/udp  reject
      ipv4: pod     10.180.0.2   172.30.0.2:80/tcp  drop
      ipv4: node    192.168.0.2  172.30.0.2:80/udp  drop
      ipv4: pod     10.180.0.2   172.30.0.3:80/tcp  forward 10.180.0.1:8080,10.180.1.1:8080
      ipv4: pod     10.180.1.2   172.30.0.3:80/tcp  forward 10.180.0.1:8080,10.180.1.1:8080 bypass 10.180.1.1:8080
      ipv4: outside 203.0.113.2  172.30.0.4:80/tcp  forward 10.180.1.1:8080 masquerade
      ipv4: node    192.168.0.2  172.30.0.4:80/tcp  forward 10.180.1.1:8080 masquerade`;
    try {
      expect(await disagreements(world, table)).toEqual([]);
      const probe = parsePackets("", "ipv4: pod 10.180.0.2 172.30.0.3:80/tcp drop")[0]!;
      const wrong: ExpectedOutcome[] = [
        { kind: "drop" },
        { kind: "forward", choices: [{ endpoint: "10.180.0.1:8080", masquerade: true, bypassed: false }] },
        { kind: "forward", choices: [{ endpoint: "10.180.0.2:8080", masquerade: false, bypassed: false }] },
      ];
      for (const outcome of wrong) expect(await check(world, probe, outcome)).toContain("seen 10.180");
    } finally {
      world.sweep();
    }
  });
});

describe("after the world", () => {
  it("no namespace is left, even when building failed half-way", async ({ skip }) => {
    if (reason !== null) return skip(reason);
    const before = ownNamespaceNames();
    const inTheWay = createNamespace("lan");
    try {
      await expect(createWorld()).rejects.toThrow("File exists");
      expect(ownNamespaceNames()).toEqual([...before, inTheWay.name]);
    } finally {
      inTheWay.remove();
    }
    expect(ownNamespaceNames()).toEqual(before);
  });

  it("closing gives back every file and thread position", async ({ skip }) => {
    if (reason !== null) return skip(reason);
    const home = openFiles();
    await (await createWorld()).close();
    expect(openFiles()).toBe(home);
  });

  it("namespaces of dead processes are swept away with what runs in them, those of living ones are not", async ({
    skip,
  }) => {
    if (reason !== null) return skip(reason);
    const { pid } = spawnSync("true");
    const [left, mine] = [`tt-${pid}-left`, `tt-${process.pid}-mine`];
    for (const name of [left, mine]) execFileSync("ip", ["netns", "add", name]);
    try {
      const orphan = spawn("ip", ["netns", "exec", left, "sleep", "60"]);
      const ended = once(orphan, "exit");
      while (execFileSync("ip", ["netns", "pids", left]).length === 0) await sleep(10);
      sweepNamespaces();
      const [, signal] = (await ended) as [number | null, string | null];
      const remaining = readdirSync("/run/netns").filter((name) => name === left || name === mine);
      expect([remaining, signal]).toEqual([[mine], "SIGKILL"]);
    } finally {
      execFileSync("ip", ["netns", "delete", mine]);
    }
  });
});

const handMadeRules = `table ip by-hand {
  chain refuse {
    type filter hook forward priority 0
    ip daddr 172.30.0.1 reject with icmp port-unreachable
    ip daddr 172.30.0.2 drop
  }
  chain refuse-own {
    type filter hook output priority 0
    ip daddr 172.30.0.1 reject with icmp port-unreachable
    ip daddr 172.30.0.2 drop
  }
  chain forward {
    type nat hook prerouting priority -100
    ip daddr 172.30.0.3 tcp dport 80 dnat to numgen random mod 2 map { 0 : 10.180.0.1 . 8080, 1 : 10.180.1.1 . 8080 }
    ip daddr 172.30.0.4 tcp dport 80 dnat to 10.180.1.1:8080
  }
  chain forward-own {
    type nat hook output priority -100
    ip daddr 172.30.0.4 tcp dport 80 dnat to 10.180.1.1:8080
  }
  chain hide {
    type nat hook postrouting priority 100
    ct original ip daddr 172.30.0.4 masquerade fully-random
  }
}`;

async function disagreements(world: World, table: string): Promise<string[]> {
  const problems = await Promise.all(
    parsePackets("", table).map((packet) => check(world, packet, packet.outcome)),
  );
  return problems.filter((problem) => problem !== null);
}

function openFiles(): number {
  return readdirSync("/proc/self/fd").length;
}
