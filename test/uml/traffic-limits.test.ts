// Counting where the kernel is at its limits: a conntrack table that is really full, and a kernel without nf_conntrack_netlink.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../kernel/site.ts";
import { cluster } from "../kernel/traffic-cluster.ts";
import { openTrafficRig, type TrafficRig } from "../kernel/traffic-rig.ts";

const slow = 240_000;
const limitFile = "/proc/sys/net/netfilter/nf_conntrack_max";
const limit = 24;

const until = (isSo: () => boolean | Promise<boolean>, what: string) => eventually(isSo, what, 60_000, 500);

describe("--traffic at limits of the kernel", () => {
  let rig: TrafficRig;

  beforeAll(async () => {
    rig = await openTrafficRig(slow);
    rig.write(cluster());
    await rig.start("services", "ipvs", "--conntrack-max-per-core=0", "--conntrack-min=0");
  }, slow);

  afterAll(() => rig.close(), slow);

  const connections = async () => (await rig.portNamed("web"))?.counts?.connections ?? 0;
  const doctor = () => {
    try {
      return { status: 0, text: rig.turnout("doctor", "flows", "--wait=0") };
    } catch (error) {
      const { status, stdout } = error as { status: number; stdout: string };
      return { status, text: stdout };
    }
  };

  it("a full conntrack table refuses connections, which do not count; doctor flows reports it", async () => {
    const before = readFileSync(limitFile, "utf8");
    // Of an attempt that failed.
    rig.node.run("conntrack", "-F");
    const earlier = await connections();
    writeFileSync(limitFile, String(limit));
    try {
      // Connections that were closed stay in the table, and are not dropped for new ones.
      const answered = rig.send({ to: "172.31.0.10", port: 80, count: limit, timeoutMs: 2000 });
      expect(answered).toBeGreaterThan(0);
      expect(rig.send({ to: "172.31.0.10", port: 80, count: 1, timeoutMs: 2000 })).toBe(0);
      await until(async () => (await connections()) >= earlier + answered, "the connections count");
      expect(await connections()).toBe(earlier + answered);
      const { status, text } = doctor();
      expect(text).toMatch(/^failed +table +\d+ of 24 entries/m);
      expect(status).toBe(4);
      expect((await rig.traffic()).flows).toMatchObject({ counted: true });
    } finally {
      writeFileSync(limitFile, before);
    }
    const full = await connections();
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 2 })).toBe(2);
    await until(async () => (await connections()) === full + 2, "two more");
  });

  it("without nf_conntrack_netlink connections are counted, and the report says why bytes are not", async () => {
    await rig.stop();
    writeFileSync("/proc/sys/kernel/modprobe", "/bin/false");
    if (readFileSync("/proc/modules", "utf8").includes("nf_conntrack_netlink "))
      execFileSync("rmmod", ["nf_conntrack_netlink"]);
    const before = await startedWith();
    expect(rig.send({ to: "172.31.0.10", port: 80, count: 3 })).toBe(3);
    await until(async () => (await connections()) === before + 3, "three more");
    const { flows, counters } = await rig.traffic();
    expect(counters).toEqual({ counted: true, gaps: [] });
    expect(flows.counted ? "" : flows.because).toBe(
      "Cannot read conntrack: the kernel has no nf_conntrack_netlink; load it with modprobe nf_conntrack_netlink",
    );
    expect(rig.top("--once")).toContain("! packets and bytes are not counted: Cannot ");
    expect(rig.metrics()).not.toContain("turnout_service_bytes_total{");
  });

  async function startedWith(): Promise<number> {
    await rig.start("services", "ipvs", "--conntrack-max-per-core=0", "--conntrack-min=0");
    return connections();
  }
});
