// Our daemon in ipvs mode across restarts, other settings and clean-up: what stays, what changes, what goes.
import { beforeAll, describe, expect, it } from "vitest";
import { type Family, families } from "../../src/model/address.ts";
import { eventually } from "../kernel/site.ts";
import { inFamily, places } from "../places.ts";
import { at, openLab, serverAt, shop, slow } from "./ipvs-lab.ts";

const lab = openLab();
const { L1, L2, R1 } = places;
const vip = "172.30.0.10";
const web = (...endpoints: readonly string[]) => shop("web", { clusterIP: vip }, endpoints);
const weightsOf = (family: Family, ...list: readonly [string, number][]) =>
  Object.fromEntries(list.map(([address, weight]) => [at(address, family), weight]));
const inBoth = async (check: (family: Family) => Promise<void>) => {
  for (const family of families) await check(family);
};
/** A connection in each family. */
const sessions = () => families.map((family) => lab.open(inFamily(L2, family), inFamily(vip, family), 80));
const talk = (list: ReturnType<typeof sessions>) => Promise.all(list.map((session) => session.talk()));

describe("a daemon at work and started again", () => {
  beforeAll(async () => {
    lab.show(...web(L1));
    // So rarely that nothing is found by polling.
    await lab.start({ ipvs: { syncPeriod: "1h" } });
    await inBoth((family) => lab.become(serverAt(vip, family), weightsOf(family, [L1, 1])));
  }, slow);

  it("restores the addresses immediately when the link is removed", async () => {
    lab.world.node.ip("link delete kube-ipvs0");
    await inBoth(async (family) => {
      const isBack = async () =>
        (await lab.reach(inFamily(L2, family), inFamily(vip, family), 80, 1)).join() === at(L1, family);
      await eventually(isBack, `${inFamily(vip, family)} answers`, slow / 2);
    });
  });

  it("20/42 changes nothing when nothing has changed", async () => {
    const open = sessions();
    const reached = await talk(open);
    const before = { servers: saved("ipvsadm", "-Sn"), sets: saved("ipset", "save"), counted: connections() };
    await lab.start();
    expect(await talk(open)).toEqual(reached);
    expect({ servers: saved("ipvsadm", "-Sn"), sets: saved("ipset", "save") }).toEqual({
      servers: before.servers,
      sets: before.sets,
    });
    expect(connections()).toBeGreaterThanOrEqual(before.counted);
    for (const session of open) session.close();
  });

  it("20/15 applies another scheduler to the servers that are there, and connections go on", async () => {
    const open = sessions();
    const reached = await talk(open);
    await lab.start({ ipvs: { scheduler: "lc" } });
    expect(saved("ipvsadm", "-Sn").filter((line) => line.startsWith("-A"))).toEqual([
      "-A -t 172.30.0.10:80 -s lc",
      `-A -t [${inFamily(vip, "ipv6")}]:80 -s lc`,
    ]);
    expect(await talk(open)).toEqual(reached);
    for (const session of open) session.close();
  });

  it("20/43 finds servers with weight 0: wanted ones get weight 1, others drain", async () => {
    const open = sessions();
    const reached = await talk(open);
    await lab.stop();
    for (const family of families) {
      const { address } = serverAt(vip, family);
      const name = family === "ipv4" ? `${address}:80` : `[${address}]:80`;
      lab.world.node.run("ipvsadm", "-e", "-t", name, "-r", at(L1, family), "-m", "-w", "0");
      lab.world.node.run("ipvsadm", "-a", "-t", name, "-r", at(R1, family), "-m", "-w", "0");
    }
    lab.show(...web(R1));
    await lab.start();
    await inBoth((family) => lab.become(serverAt(vip, family), weightsOf(family, [L1, 0], [R1, 1])));
    expect(await talk(open)).toEqual(reached);
    for (const session of open) session.close();
  });

  it("20/6 uses no scheduler that the kernel lacks", async () => {
    await lab.stop();
    // As if an earlier probe had been left.
    lab.world.node.run("ipvsadm", "-A", "-t", "198.51.100.0:20000", "-s", "wlc");
    const { code, log } = await lab.site.finish({ config: { mode: "ipvs", ipvs: { scheduler: "nope" } } });
    expect(code).toBe(1);
    expect(log).toContain("can't use the IPVS proxier: ");
    expect(saved("ipvsadm", "-Sn").join("\n")).not.toContain("198.51.100.0");
  });
});

describe("strictARP", () => {
  it.each([
    [false, "0", "REACHABLE"],
    [true, "1", "FAILED"],
  ])(
    "20/3 is %s: neighbours that resolve a Service address get a reply or not",
    async (strictARP, sysctl, state) => {
      lab.world.node.sysctl({ "net.ipv4.conf.all.arp_ignore": 0, "net.ipv4.conf.all.arp_announce": 0 });
      lab.show(...web(L1));
      await lab.start({ ipvs: { strictARP } });
      await lab.become(serverAt(vip, "ipv4"), weightsOf("ipv4", [L1, 1]));
      expect(saved("sysctl", "-n", "net.ipv4.conf.all.arp_ignore")).toEqual([sysctl]);
      const neighbour = lab.world.at.RN;
      neighbour.ip(`route replace ${vip}/32 dev eth0`, `neigh flush dev eth0 to ${vip}`);
      await lab.reach("192.168.0.3", vip, 80, 1);
      await eventually(() => neighbour.run("ip", "neigh", "show", vip).includes(state), `${vip} is ${state}`);
      neighbour.ip(`route delete ${vip}/32 dev eth0`);
    },
  );
});

describe("clean-up", () => {
  it("20/44 leaves nothing, of either family, and can be repeated", async () => {
    lab.world.node.run("ipvsadm", "-A", "-t", "203.0.113.77:80", "-s", "rr");
    await lab.stop();
    for (const _ of [1, 2]) {
      const { code, log } = await lab.site.finish({ config: { mode: "ipvs" }, args: ["--cleanup"] });
      expect({ code, log: code === 0 ? "" : log }).toEqual({ code: 0, log: "" });
      expect(saved("ipset", "save")).toEqual([]);
      expect(lab.world.node.run("ip", "-o", "link")).not.toContain("kube-ipvs0");
      for (const tool of ["iptables-save", "ip6tables-save"])
        expect(lab.world.node.run(tool)).not.toContain("KUBE-");
      // Upstream flushes foreign servers as well.
      expect(saved("ipvsadm", "-Sn")).toEqual(["-A -t 203.0.113.77:80 -s rr"]);
    }
  });
});

function saved(...command: readonly [string, ...string[]]): string[] {
  const [program, ...args] = command;
  const lines = lab.world.node.run(program, ...args).split("\n");
  return lines.filter((line) => line !== "").sort();
}

/** How many connections all servers have had. */
function connections(): number {
  const lines = lab.world.node.run("ipvsadm", "-Ln", "--stats", "--exact").split("\n");
  return lines
    .filter((line) => line.startsWith("TCP"))
    .reduce((sum, line) => sum + Number(line.split(/\s+/)[2]), 0);
}
