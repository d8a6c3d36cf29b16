// Known numbers of connections through a daemon that counts in ipvs mode: its totals are those that ipvsadm prints.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TrafficReport } from "../../src/observe/traffic/report.ts";
import { eventually } from "../kernel/site.ts";
import { cluster } from "../kernel/traffic-cluster.ts";
import { openTrafficRig, type TrafficRig } from "../kernel/traffic-rig.ts";

const slow = 240_000;

const until = (isSo: () => boolean | Promise<boolean>, what: string) => eventually(isSo, what, 60_000, 500);

function gapsOf({ counters }: TrafficReport) {
  return counters.counted ? counters.gaps : [];
}

describe("--traffic in ipvs mode", () => {
  let rig: TrafficRig;

  beforeAll(async () => {
    rig = await openTrafficRig(slow);
    rig.write(cluster());
    await rig.start("endpoints", "ipvs", "--ipvs-sync-period=2s");
  }, slow);

  afterAll(() => rig.close(), slow);

  const connectionsOf = async (name: string) => (await rig.portNamed(name))?.counts?.connections;
  const expectConnections = async (name: string, connections: number) => {
    await until(async () => (await connectionsOf(name)) === connections, `${connections} to ${name}`);
  };
  /** Connections that the real tool prints for a virtual server. */
  const listed = (server: string) =>
    Number(
      rig.node
        .run("ipvsadm", "-Ln", "--stats", "--exact")
        .split("\n")
        .find((line) => line.includes(` ${server} `))
        ?.trim()
        .split(/ +/)[2],
    );

  it("counts every connection once, as ipvsadm --stats does", async () => {
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 5 })).toBe(5);
    expect(rig.send({ to: "fd00:99::10", port: 80, count: 3 })).toBe(3);
    expect(rig.send({ to: "192.168.7.1", port: 30010, count: 2 })).toBe(2);
    expect(rig.send({ to: "198.51.100.7", port: 80, count: 2 })).toBe(2);
    expect(rig.send({ to: "172.31.0.11", port: 80, count: 4, udp: true })).toBe(4);
    expect(rig.send({ to: "172.31.0.12", port: 80, count: 3 })).toBe(3);
    await expectConnections("web", 12);
    await expectConnections("dns", 4);
    await expectConnections("sticky", 3);
    const servers = ["172.31.0.10:80", "[fd00:99::10]:80", "192.168.7.1:30010", "198.51.100.7:80"];
    expect(servers.map(listed)).toEqual([5, 3, 2, 2]);
  });

  it("counts connections of each endpoint, which add up to those of the Service", async () => {
    const { endpoints, counts } = (await rig.portNamed("web"))!;
    expect(endpoints).toHaveLength(4);
    expect(endpoints.reduce((sum, { connections }) => sum + connections!, 0)).toBe(12);
    expect(counts).toEqual({ connections: 12, refused: null, outOfRange: null });
    const pinned = (await rig.portNamed("sticky"))!.endpoints.filter(({ connections }) => connections! > 0);
    expect(pinned.map(({ connections }) => connections)).toEqual([3]);
  });

  it("counts bytes from conntrack, and shows all of it in metrics and top", async () => {
    await until(async () => ((await rig.portNamed("web"))?.flows?.bytesOut ?? 0) > 12 * 1000, "bytes");
    const labels = 'namespace="shop",port="main",service="web"';
    expect(rig.metrics()).toContain(`turnout_service_connections_total{${labels}} 12\n`);
    const screen = rig.top("--once", "shop/web");
    expect(screen).toMatch(/^SERVICE +PORT +CONNS +ACTIVE +IN +OUT +SKEW\nshop\/web +main +12 /);
  });

  it("continues when endpoints change and when the daemon restarts", async () => {
    rig.write(cluster([3]));
    await until(async () => (await rig.portNamed("web"))?.endpoints.length === 2, "fewer endpoints");
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 2 })).toBe(2);
    await expectConnections("web", 14);
    expect((await rig.traffic()).counters).toEqual({ counted: true, gaps: [] });
    await rig.stop();
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 1 })).toBe(1);
    await rig.start("services", "ipvs", "--ipvs-sync-period=2s");
    await expectConnections("web", 15);
  });

  it.each([
    ["-Z", "set back"],
    ["-C", "deleted"],
  ])("reports counters that ipvsadm %s has %s as unknown, and counts on", async (option) => {
    await rig.stop();
    await rig.start("services", "ipvs", "--ipvs-sync-period=2s");
    const before = (await connectionsOf("web"))!;
    const { at } = await rig.traffic();
    rig.node.run("ipvsadm", option);
    const changed = Date.now();
    await until(() => rig.node.run("ipvsadm", "-Ln").includes("172.31.0.10:80"), "the server is back");
    await until(async () => gapsOf(await rig.traffic()).length === 1, "a gap");
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 2 })).toBe(2);
    await expectConnections("web", before + 2);
    const [gap] = gapsOf(await rig.traffic());
    expect(gap!.from).toBeLessThanOrEqual(at!);
    expect(gap!.to).toBeGreaterThanOrEqual(changed);
  });
});
