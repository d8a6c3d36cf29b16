// Known numbers of connections and bytes through a daemon that counts: its totals match them, and the real conntrack tool.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CountGap } from "../../src/model/count-gaps.ts";
import type { Coverage } from "../../src/observe/traffic/report.ts";
import type { FlowNumbers } from "../../src/traffic/flow-totals.ts";
import { insertFlows } from "./insert-flows.ts";
import { reasonNotToRun } from "./site.ts";
import { cluster } from "./traffic-cluster.ts";
import { openTrafficRig, type TrafficRig } from "./traffic-rig.ts";

describe.skipIf(reasonNotToRun() !== null)("--traffic", { retry: 0 }, () => {
  let rig: TrafficRig;

  beforeAll(async () => {
    rig = await openTrafficRig();
    rig.write(cluster());
    await rig.start("endpoints");
  }, 60_000);

  afterAll(() => rig.close());

  const countsOf = async (name: string) => (await rig.portNamed(name))?.counts ?? null;
  const expectConnections = async (name: string, connections: number) => {
    await expect.poll(async () => (await countsOf(name))?.connections, { timeout: 15_000 }).toBe(connections);
  };
  const expectBytes = async (more: number) => {
    const bytesOut = async () => (await rig.portNamed("web"))?.flows?.bytesOut ?? 0;
    await expect.poll(bytesOut, { timeout: 20_000 }).toBeGreaterThan(more).catch(explained);
  };
  /** What the daemon reported decides why something was not counted in time. */
  const explained = async (error: Error) => {
    const { at, counters, flows } = await rig.traffic();
    throw new Error(`${error.message}: ${JSON.stringify({ at, counters, flows })}\n${rig.log()}`);
  };

  it("counts every connection once: TCP, UDP, both families, NodePort, external IP, sticky, from the node", async () => {
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 7 })).toBe(7);
    expect(rig.send({ to: "fd00:99::10", port: 80, count: 5 })).toBe(5);
    expect(rig.send({ to: "192.168.7.1", port: 30010, count: 4 })).toBe(4);
    expect(rig.send({ to: "198.51.100.7", port: 80, count: 3 })).toBe(3);
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 2, from: "node" })).toBe(2);
    await expectConnections("web", 21);
    expect(rig.send({ to: "172.31.0.11", port: 80, count: 6, udp: true })).toBe(6);
    expect(rig.send({ to: "fd00:99::11", port: 80, count: 3, udp: true })).toBe(3);
    await expectConnections("dns", 9);
    expect(rig.send({ to: "172.31.0.12", port: 80, count: 8 })).toBe(8);
    await expectConnections("sticky", 8);
  }, 60_000);

  it("counts connections of each endpoint, which add up to those of the Service", async () => {
    const { endpoints } = (await rig.portNamed("web"))!;
    expect(endpoints.map(({ endpoint }) => endpoint).toSorted()).toEqual(
      ["10.8.0.2:8080", "10.8.0.3:8080", "[fd00:8::2]:8080", "[fd00:8::3]:8080"].toSorted(),
    );
    const sum = endpoints.reduce((total, { connections }) => total + connections!, 0);
    expect(sum).toBe(21);
    const pinned = (await rig.portNamed("sticky"))!.endpoints.filter(({ endpoint }) =>
      endpoint.startsWith("10."),
    );
    expect(pinned.map(({ connections }) => connections).toSorted((a, b) => a! - b!)).toEqual([0, 8]);
  });

  it("counts packets and bytes as the conntrack tool lists them", async () => {
    const listed = conntrackSums("172.31.0.10");
    expect(listed.flows).toBe(9);
    await expectBytes(0);
    const before = (await rig.portNamed("web"))!.flows!;
    expect(before.active).toBe(0);
    const all = allWebSums();
    expect(before).toMatchObject({
      packetsIn: all.packetsIn,
      bytesIn: all.bytesIn,
      packetsOut: all.packetsOut,
      bytesOut: all.bytesOut,
    });
    expect(before.bytesOut).toBeGreaterThanOrEqual(21 * 1000);
  }, 60_000);

  it("keeps the bytes of connections that the kernel forgets", async () => {
    const before = (await rig.portNamed("web"))!.flows!;
    rig.node.run("conntrack", "-F");
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 1 })).toBe(1);
    const one = conntrackSums("172.31.0.10");
    await expect
      .poll(async () => (await rig.portNamed("web"))!.flows!.bytesOut, { timeout: 20_000 })
      .toBe(before.bytesOut + one.bytesOut);
    expect((await rig.traffic()).flows).toEqual({ counted: true, gaps: [] });
  }, 60_000);

  it("counts what is refused, and not as a connection", async () => {
    expect(rig.send({ to: "172.31.0.13", port: 80, count: 3, udp: true, timeoutMs: 2000 })).toBe(0);
    await expect
      .poll(() => countsOf("empty"), { timeout: 15_000 })
      .toMatchObject({ connections: 0, refused: 3 });
    expect(rig.send({ to: "203.0.113.7", port: 80, count: 1, timeoutMs: 2000 })).toBe(0);
    await expect
      .poll(async () => (await countsOf("ranged"))!.outOfRange, { timeout: 15_000 })
      .toBeGreaterThanOrEqual(1);
    expect((await countsOf("ranged"))!.connections).toBe(0);
  }, 60_000);

  it("loses nothing when endpoints come and go", async () => {
    for (const pods of [[2], [2, 3], [3], [2, 3]]) {
      rig.write(cluster(pods));
      await expect
        .poll(() => rig.node.run("nft", "list", "chain", "ip", "kube-proxy", "services") && slotsOf(rig), {
          timeout: 10_000,
        })
        .toBe(pods.length);
      expect(rig.send({ to: "172.31.0.10", port: 80, count: 2 })).toBe(2);
    }
    await expectConnections("web", 22 + 8);
    expect((await rig.traffic()).counters).toEqual({ counted: true, gaps: [] });
  }, 60_000);

  it("is shown by metrics under the same names", async () => {
    const text = rig.metrics();
    const labels = 'namespace="shop",port="main",service="web"';
    expect(text).toContain(`turnout_service_connections_total{${labels}} 30`);
    expect(text).toContain('turnout_service_connections_total{namespace="shop",port="main",service="dns"} 9');
    expect(text).toMatch(
      /turnout_service_refused_packets_total\{namespace="shop",port="main",reason="no-endpoint",service="empty"\} 3/,
    );
    expect(text).toMatch(
      /turnout_service_bytes_total\{direction="out",namespace="shop",port="main",service="web"\} \d{5}/,
    );
    expect(text).toMatch(/turnout_endpoint_connections_total\{.*service="sticky".*\} 8/);
  });

  it("is shown by turnout top and turnout diff finds the kernel as it should be", () => {
    const json = JSON.parse(rig.top("--once", "-o", "json")) as { ports: { name: string }[] };
    expect(json.ports.map(({ name }) => name)).toEqual(["dns", "empty", "ranged", "sticky", "web"]);
    const screen = rig.top("--once", "--endpoints", "--sort=connections", "shop/web");
    expect(screen).toMatch(/^SERVICE +PORT +CONNS +ACTIVE +IN +OUT +REFUSED +SKEW\nshop\/web +main +30 /);
    expect(screen.match(/^ {2}\S+:8080 +\d+ +0$/gm)).toHaveLength(4);
    expect(rig.turnout("diff", "--live")).toBe("The kernel holds what it should.\n");
    expect(rig.turnout("render", "-o", "nftables")).toContain("set traffic-ips");
  });

  it("continues after a restart, with what was counted while no daemon was running", async () => {
    await rig.stop();
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 5 })).toBe(5);
    await rig.start("services");
    await expectConnections("web", 35);
    expect((await rig.portNamed("web"))!.endpoints).toEqual([]);
    expect(rig.node.run("nft", "list", "ruleset")).not.toContain("counted-endpoints");
  }, 60_000);

  it("loses by a foreign flush exactly what was counted since the last read, which is unknown from … to …", async () => {
    // The next read is ten seconds after the start, unless a client asks.
    await rig.stop();
    const since = Date.now();
    await rig.start("services");
    // One answer: a second one may come from a later read.
    const { at, ports } = await rig.traffic();
    expect(ports.find(({ name }) => name === "web")!.counts!.connections).toBe(35);
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 3 })).toBe(3);
    const flushed = Date.now();
    rig.node.run("nft", "flush", "ruleset");
    await expect
      .poll(() => rig.node.run("nft", "list", "ruleset").match(/set traffic-ips/g)?.length, {
        timeout: 10_000,
      })
      .toBe(2);
    // The kernel has the table a moment before the daemon knows.
    await expect.poll(async () => gapsOf((await rig.traffic()).counters).length).toBe(1);
    const repaired = Date.now();
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 4 })).toBe(4);
    await expectConnections("web", 35 + 4);
    const gap = expectOneGap((await rig.traffic()).counters);
    expect(gap.from).toBeLessThanOrEqual(at!);
    expect(gap.from).toBeGreaterThanOrEqual(since);
    expect(gap.to).toBeGreaterThanOrEqual(flushed);
    expect(gap.to).toBeLessThanOrEqual(repaired);
    expect(rig.metrics()).toContain(
      `turnout_traffic_unknown_seconds{source="counters"} ${(gap.to - gap.from) / 1000}\n`,
    );
    const [from, to] = [gap.from, gap.to].map((time) => new Date(time).toISOString().slice(11, 19));
    expect(rig.top("--once")).toContain(`! connections are unknown from ${from} to ${to} UTC, `);
  }, 60_000);

  it("reports lost conntrack events as unknown, and counts as the conntrack tool lists after that", async () => {
    const since = Date.now();
    const { bytesOut } = (await rig.portNamed("web"))!.flows!;
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 1 })).toBe(1);
    // Its entry stays, so these bytes are known once all flows have been read again.
    await expect
      .poll(async () => (await rig.portNamed("web"))!.flows!.bytesOut, { timeout: 20_000 })
      .toBeGreaterThan(bytesOut);
    const before = (await rig.portNamed("web"))!.flows!;
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 2 })).toBe(2);
    const two = conntrackSums("172.31.0.10");
    rig.signal("SIGSTOP");
    try {
      await insertFlows(rig.node, moreThanBuffered);
      rig.node.run("conntrack", "-F");
    } finally {
      rig.signal("SIGCONT");
    }
    const continued = Date.now();
    await expect.poll(async () => gapsOf((await rig.traffic()).flows).length, { timeout: 20_000 }).toBe(1);
    const after = (await rig.portNamed("web"))!.flows!;
    expect(after.bytesOut).toBeGreaterThanOrEqual(before.bytesOut);
    expect(after.bytesOut).toBeLessThanOrEqual(before.bytesOut + two.bytesOut);
    const gap = expectOneGap((await rig.traffic()).flows);
    expect(gap.from).toBeGreaterThanOrEqual(since);
    expect(gap.from).toBeLessThanOrEqual(continued);
    expect(gap.to).toBeGreaterThanOrEqual(continued);
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 3 })).toBe(3);
    const listed = conntrackSums("172.31.0.10");
    expect(listed.flows).toBe(3);
    await expect
      .poll(async () => grownBy(after, (await rig.portNamed("web"))!.flows!), { timeout: 20_000 })
      .toEqual({ ...listed, flows: 0 });
    expect(expectOneGap((await rig.traffic()).flows)).toEqual(gap);
  }, 60_000);

  it("leaves no trace when it is off", async () => {
    await rig.stop();
    await rig.start("off");
    expect(rig.node.run("nft", "list", "ruleset")).not.toMatch(/traffic-|refused-|counted-|counter/);
    expect(await rig.traffic()).toMatchObject({
      setting: "off",
      counters: { counted: false, because: "--traffic is off" },
    });
    // TIME_WAIT entries of the tests before are not active: only a connection that stays open is.
    const open = rig.hold({ to: "172.31.0.10", port: 80 });
    try {
      await expect.poll(async () => (await rig.portNamed("web"))?.flows?.active, { timeout: 10_000 }).toBe(1);
      expect(rig.top("--once")).toMatch(
        /^! only active connections: .*\nSERVICE +PORT +ACTIVE\n(.*\n)*shop\/web +main +1\n/,
      );
    } finally {
      open();
    }
  }, 60_000);

  it("counts connections in userspace mode, where the relays know them", async () => {
    await rig.stop();
    await rig.start("endpoints", "userspace");
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 4 })).toBe(4);
    expect(rig.send({ to: "fd00:99::10", port: 80, count: 2 })).toBe(2);
    expect(rig.send({ to: "192.168.7.1", port: 30010, count: 2 })).toBe(2);
    expect(rig.send({ to: "172.31.0.11", port: 80, count: 3, udp: true })).toBe(3);
    expect(rig.send({ to: "172.31.0.13", port: 80, count: 2, udp: true, timeoutMs: 2000 })).toBe(0);
    await expectConnections("web", 8);
    await expectConnections("dns", 3);
    const { endpoints } = (await rig.portNamed("web"))!;
    expect(endpoints.map(({ connections }) => connections).toSorted((a, b) => a! - b!)).toEqual([1, 1, 3, 3]);
    expect(await countsOf("empty")).toEqual({ connections: 0, refused: 2, outOfRange: 0 });
    await expectBytes(8 * 1000);
    expect(rig.metrics()).toContain(
      'turnout_service_connections_total{namespace="shop",port="main",service="web"} 8\n',
    );
  }, 60_000);

  it("counts bytes in iptables mode, and reports that connections are not counted", async () => {
    await rig.stop();
    await rig.start("services", "iptables");
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 3 })).toBe(3);
    await expectBytes(3 * 1000);
    expect((await rig.traffic()).counters).toEqual({
      counted: false,
      because:
        "iptables mode does not count connections and refused packets: the counters of its rules begin again when a Sync rewrites them; nftables mode counts them",
    });
  }, 60_000);

  it("counts connections, and states why bytes are not counted, where the daemon may not set nf_conntrack_acct", async () => {
    await rig.stop();
    const file = "/proc/sys/net/netfilter/nf_conntrack_acct";
    rig.node.sysctl({ "net.netfilter.nf_conntrack_acct": 0 });
    rig.makeReadOnly(file);
    await rig.start("services");
    const { connections } = (await countsOf("web")) ?? { connections: 0 };
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 2 })).toBe(2);
    await expectConnections("web", connections + 2);
    expect((await rig.traffic()).flows).toEqual({
      counted: false,
      because: `${file} is not 1: the kernel does not count packets and bytes of connections`,
    });
    expect(rig.log()).toContain("Packets and bytes of Services are not counted");
    expect(rig.metrics()).not.toContain("turnout_service_bytes_total{");
    expect(rig.top("--once")).toContain(`! packets and bytes are not counted: ${file} is not 1`);
  }, 60_000);

  /** Sums of `conntrack -L` for flows to an address. */
  function conntrackSums(destination: string, family = "ipv4") {
    const out = rig.node.run("conntrack", "-L", "-f", family, "--orig-dst", destination);
    const sums = { flows: 0, packetsIn: 0, bytesIn: 0, packetsOut: 0, bytesOut: 0 };
    for (const line of out.split("\n").filter((each) => each.includes("dport="))) {
      const numbers = [...line.matchAll(/(packets|bytes)=(\d+)/g)].map(([, , value]) => Number(value));
      sums.flows++;
      sums.packetsIn += numbers[0]!;
      sums.bytesIn += numbers[1]!;
      sums.packetsOut += numbers[2]!;
      sums.bytesOut += numbers[3]!;
    }
    return sums;
  }

  function allWebSums() {
    const parts = [
      conntrackSums("172.31.0.10"),
      conntrackSums("fd00:99::10", "ipv6"),
      conntrackSums("192.168.7.1"),
      conntrackSums("198.51.100.7"),
    ];
    const sum = { packetsIn: 0, bytesIn: 0, packetsOut: 0, bytesOut: 0 };
    for (const part of parts)
      for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += part[name];
    return sum;
  }
});

/** More events than the socket of the daemon holds. */
const moreThanBuffered = 60_000;

function gapsOf(coverage: Coverage): readonly CountGap[] {
  return coverage.counted ? coverage.gaps : [];
}

function expectOneGap(coverage: Coverage): CountGap {
  const gaps = gapsOf(coverage);
  expect(gaps).toHaveLength(1);
  return gaps[0]!;
}

/** By the names of `conntrackSums`. */
function grownBy(before: FlowNumbers, after: FlowNumbers) {
  return {
    flows: 0,
    packetsIn: after.packetsIn - before.packetsIn,
    bytesIn: after.bytesIn - before.bytesIn,
    packetsOut: after.packetsOut - before.packetsOut,
    bytesOut: after.bytesOut - before.bytesOut,
  };
}

/** How many slots the cluster IP of web has. */
function slotsOf(rig: TrafficRig): number {
  const map = rig.node.run("nft", "list", "map", "ip", "kube-proxy", "counted-endpoints");
  return map.match(/172\.31\.0\.10 \. tcp \. 80 \. \d/g)?.length ?? 0;
}
