// What the daemon leaves, takes over and removes: switching modes, --cleanup, and flushed tables.
import { describe, expect, it } from "vitest";
import { families } from "../../src/model/address.ts";
import { inFamily, places } from "../places.ts";
import { readScenario } from "../scenarios.ts";
import { type AmongPods, daemonAmongPods } from "./among-pods.ts";
import { openConversation } from "./conversation.ts";
import { type Probe, senderAt } from "./probe.ts";
import { eventually, sampleOf } from "./site.ts";
import { steadyTraffic } from "./traffic.ts";

const objects = ["node-port", "udp-flows"].flatMap((name) => readScenario(name).objects);
const foreign = "FOREIGN";

type ModeOnNode = {
  /** Whether its rules are on the node. */
  readonly isThere: (node: AmongPods) => boolean;
  /** Its rules stay in force when the process has ended. */
  readonly servesAlone: boolean;
};

/** A new mode is a line here. */
const modes: Readonly<Record<string, ModeOnNode>> = {
  nftables: { isThere: hasNftables, servesAlone: true },
  iptables: { isThere: hasIptables, servesAlone: true },
  userspace: { isThere: ({ saved }) => /^:KUBE-PORTALS-/m.test(saved()), servesAlone: false },
};

const switches = Object.keys(modes).flatMap((from) =>
  Object.keys(modes).flatMap((to) => (from === to ? [] : [[from, to] as const])),
);

describe("switching modes", () => {
  const node = daemonAmongPods(objects);
  const isAlone = (mode: string) =>
    Object.entries(modes).every(([name, { isThere }]) => isThere(node) === (name === mode));

  it.each(switches.filter(([from]) => modes[from]!.servesAlone))(
    "%s → %s: no gap for new flows, connections live on, and the other rules go",
    async (from, to) => {
      await node.stop(await node.started({ mode: from }));
      const kept = connections(node);
      const endpoints = await Promise.all(kept.map((connection) => connection.talk()));
      const traffic = steadyTraffic(node.world, newFlows(), 20);
      await node.started({ mode: to });
      await eventually(() => isAlone(to), `rules of ${to} alone`);
      expect(await Promise.all(kept.map((connection) => connection.talk()))).toEqual(endpoints);
      await eventually(() => traffic.sent() > 20, "twenty flows");
      expect(await traffic.stop()).toEqual([]);
      for (const connection of kept) connection.close();
    },
  );

  it.each(switches.filter(([from]) => !modes[from]!.servesAlone))(
    "%s → %s: its rules, which lead nowhere, go first, and from the first Sync on all is served",
    async (from, to) => {
      await node.stop(await node.started({ mode: from }));
      await node.started({ mode: to });
      expect(isAlone(to)).toBe(true);
      const traffic = steadyTraffic(node.world, newFlows(), 20);
      await eventually(() => traffic.sent() > 20, "some traffic");
      expect(await traffic.stop()).toEqual([]);
    },
  );
});

function hasIptables({ saved }: AmongPods): boolean {
  return /^:KUBE-SERVICES/m.test(saved());
}

function hasNftables({ site }: AmongPods): boolean {
  return site.netns.run("nft", "list", "tables").includes("kube-proxy");
}

function connections({ world }: AmongPods) {
  const to = (address: string, port: number) =>
    families.map((family) => ({ address: inFamily(address, family), port }));
  const from = (address: string) => families.map((family) => senderAt(world, inFamily(address, family)));
  const [pods, outside] = [from(places.L2), from(places.X)];
  return families.flatMap((_, i) => [
    openConversation(pods[i]!, "tcp", to("172.30.0.25", 80)[i]!),
    openConversation(outside[i]!, "tcp", to(places.host, 30025)[i]!),
  ]);
}

describe("the daemon's rules", () => {
  const node = daemonAmongPods(objects);
  const { started, stop, saved: iptables } = node;
  const run = (family: "ipv4" | "ipv6", suffix: string, ...args: readonly string[]) =>
    node.site.netns.run(`${family === "ipv4" ? "iptables" : "ip6tables"}${suffix}`, ...args);

  it.each(["iptables", "userspace"])(
    "go with --cleanup, also those of %s, as often as one likes; foreign rules stay",
    async (used) => {
      node.site.netns.run("nft", "add", "table", "ip", foreign);
      run("ipv4", "", "-t", "nat", "-N", foreign);
      run("ipv4", "", "-t", "nat", "-A", "POSTROUTING", "-j", foreign);
      await stop(await started({ mode: used }));
      expect(iptables()).toMatch(/^:KUBE-\w+/m);
      node.site.netns.run("nft", "add", "table", "ip6", "kube-proxy");
      node.site.netns.run("nft", "add", "table", "ip", "kube-proxy");
      for (const mode of ["nftables", ""]) {
        const { code, log } = await node.site.finish({ config: { mode }, args: ["--cleanup"] });
        expect({ code, log }).toMatchObject({ code: 0 });
        expect(hasIptables(node)).toBe(false);
        expect(hasNftables(node)).toBe(false);
      }
      expect(iptables()).toContain(`-A POSTROUTING -j ${foreign}`);
      expect(iptables()).not.toMatch(/KUBE-(SVC|SEP|EXT|NODEPORT|PORTALS|POSTROUTING|PROXY)/);
      expect(node.site.netns.run("nft", "list", "tables")).toContain(foreign);
    },
  );

  it("02/31 02/32 come back with the canaries when tables are flushed", async () => {
    const daemon = await started({ mode: "iptables" });
    const canaries = () => iptables().match(/^:KUBE-PROXY-CANARY/gm)?.length ?? 0;
    const repaired = async () =>
      sampleOf(await daemon.metrics(), 'turnout_drift_repaired_total{ip_family="IPv4"}');
    expect(canaries()).toBe(6);
    for (const tables of [["mangle", "nat", "filter"], ["mangle"]]) {
      const before = await repaired();
      // The daemon may repair at any moment: a table is emptied in one step.
      node.site.netns.feed(tables.map((table) => `*${table}\nCOMMIT\n`).join(""), "iptables-restore");
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
