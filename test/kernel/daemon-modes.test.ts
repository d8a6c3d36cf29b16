// What the daemon leaves, takes over and removes: switching modes, --cleanup, and tables that somebody flushed.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { families } from "../../src/model/address.ts";
import { inFamily, places } from "../places.ts";
import { readScenario } from "../scenarios.ts";
import type { Probe } from "./probe.ts";
import { type Daemon, eventually, openSite, reasonNotToRun, type Site, sampleOf } from "./site.ts";
import { steadyTraffic } from "./traffic.ts";
import { createWorld, type World } from "./world.ts";

const reason = reasonNotToRun();
const { objects } = readScenario("udp-flows");
const foreign = "FOREIGN";

describe("the daemon's rules", () => {
  let world: World;
  let site: Site;
  beforeEach(async ({ skip }) => {
    skip(reason !== null, reason ?? "");
    world = await createWorld();
    site = await openSite(world.node);
    await site.openApi();
    for (const object of objects) site.api.put(object);
  });
  afterEach(async () => {
    await site?.close();
    await world?.close();
  });

  async function started(mode: string): Promise<Daemon> {
    const daemon = site.start({ config: { mode } });
    await daemon.ready();
    return daemon;
  }

  async function stop(daemon: Daemon): Promise<void> {
    daemon.kill("SIGTERM");
    await daemon.ended();
  }

  const iptables = () => families.map((family) => run(family, "-save")).join("\n");
  const run = (family: "ipv4" | "ipv6", suffix: string, ...args: readonly string[]) =>
    site.netns.run(`${family === "ipv4" ? "iptables" : "ip6tables"}${suffix}`, ...args);
  const hasIptables = () => /^:KUBE-SERVICES/m.test(iptables());
  const hasNftables = () => site.netns.run("nft", "list", "tables").includes("kube-proxy");

  it("switches between modes without a gap for new connections, and the other mode's rules go", async () => {
    await stop(await started("iptables"));
    const traffic = steadyTraffic(world, newFlows(), 20);
    for (const mode of ["nftables", "iptables", "nftables"]) {
      const daemon = await started(mode);
      await eventually(() => hasNftables() === (mode === "nftables"), `table of nftables in mode ${mode}`);
      await eventually(() => hasIptables() === (mode === "iptables"), `chains of iptables in mode ${mode}`);
      await stop(daemon);
    }
    expect(await traffic.stop()).toEqual([]);
    expect(traffic.sent()).toBeGreaterThan(50);
  });

  it.each(["iptables", "userspace"])(
    "go with --cleanup, also those of %s, as often as one likes; foreign rules stay",
    async (used) => {
      site.netns.run("nft", "add", "table", "ip", foreign);
      run("ipv4", "", "-t", "nat", "-N", foreign);
      run("ipv4", "", "-t", "nat", "-A", "POSTROUTING", "-j", foreign);
      await stop(await started(used));
      expect(iptables()).toMatch(/^:KUBE-\w+/m);
      site.netns.run("nft", "add", "table", "ip6", "kube-proxy");
      site.netns.run("nft", "add", "table", "ip", "kube-proxy");
      for (const mode of ["nftables", ""]) {
        const { code, log } = await site.finish({ config: { mode }, args: ["--cleanup"] });
        expect({ code, log }).toMatchObject({ code: 0 });
        expect(hasIptables()).toBe(false);
        expect(hasNftables()).toBe(false);
      }
      expect(iptables()).toContain(`-A POSTROUTING -j ${foreign}`);
      expect(iptables()).not.toMatch(/KUBE-(SVC|SEP|EXT|NODEPORT|PORTALS|POSTROUTING|PROXY)/);
      expect(site.netns.run("nft", "list", "tables")).toContain(foreign);
    },
  );

  it("02/31 02/32 come back with the canaries when tables are flushed", async () => {
    const daemon = await started("iptables");
    const canaries = () => iptables().match(/^:KUBE-PROXY-CANARY/gm)?.length ?? 0;
    const repaired = async () =>
      sampleOf(await daemon.metrics(), 'turnout_drift_repaired_total{ip_family="IPv4"}');
    expect(canaries()).toBe(6);
    for (const tables of [["mangle", "nat", "filter"], ["mangle"]]) {
      const before = await repaired();
      // The daemon may repair at any moment: a table is emptied in one step.
      site.netns.feed(tables.map((table) => `*${table}\nCOMMIT\n`).join(""), "iptables-restore");
      await eventually(async () => (await repaired()) > before, `a repair of ${tables.join(", ")}`);
      await eventually(() => canaries() === 6, `canaries after a flush of ${tables.join(", ")}`);
      await eventually(() => run("ipv4", "-save").includes("172.30.0.85"), "rules of a Service");
    }
  });
});

function newFlows(): Probe[] {
  const to = (address: string, port: number) => ({ address, port, protocol: "udp" as const });
  return families.flatMap((family) => [
    {
      from: { kind: "pod", address: inFamily(places.L2, family) },
      to: to(inFamily("172.30.0.85", family), 80),
    },
    {
      from: { kind: "outside", address: inFamily(places.X, family) },
      to: to(inFamily(places.host, family), 30085),
    },
  ]);
}
