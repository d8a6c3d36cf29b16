// The guard of CVE-2020-8558 in iptables mode: neighbours never reach loopback addresses for longer than seconds.
import { chmodSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { places } from "../places.ts";
import { readScenario } from "../scenarios.ts";
import { daemonAmongPods } from "./among-pods.ts";
import { reasonWithoutLegacy } from "./legacy-tools.ts";
import { resultOf } from "./probe.ts";
import type { Daemon } from "./site.ts";
import { macs } from "./world.ts";

describe("the guard of loopback addresses", () => {
  const node = daemonAmongPods(readScenario("node-port").objects);
  const config = { mode: "iptables", iptables: { syncPeriod: "2s", minSyncPeriod: "10ms" } };
  const flush = (tool = "iptables") => node.site.netns.run(tool, "-w", "5", "-F", "KUBE-FIREWALL");

  /** What a neighbour gets from a port of loopback where nothing listens: a reset shows that the packet arrived. */
  const neighbour = async () => {
    // An ARP request that comes from 127.0.0.1 is not answered.
    node.site.netns.ip(`neigh replace ${places.X} lladdr ${macs.X} dev eth0`);
    const to = { address: "127.0.0.1", port: 7, protocol: "tcp" as const };
    const { kind } = await resultOf(node.world, { from: { kind: "outside", address: places.X }, to });
    return kind === "errno" ? "reached" : "dropped";
  };
  const reasons = async (daemon: Daemon) => {
    const { reasons = [] } = JSON.parse((await daemon.health())!.body) as {
      reasons?: { kind: string; message: string }[];
    };
    return reasons.map(({ kind, message }) => `${kind}: ${message}`);
  };

  it("security/4: is restored within seconds of a flush of its chain", async () => {
    const daemon = await node.started({
      mode: "iptables",
      iptables: { syncPeriod: "10m", minSyncPeriod: "10ms" },
    });
    expect(await neighbour()).toBe("dropped");
    for (const args of [
      ["-F", "KUBE-FIREWALL"],
      ["-D", "KUBE-FIREWALL", "1"],
      ["-D", "INPUT", "-j", "KUBE-FIREWALL"],
    ]) {
      node.site.netns.run("iptables", "-w", "5", ...args);
      await expect.poll(neighbour, { timeout: 10_000 }).toBe("dropped");
      await expect.poll(() => node.saved()).toMatch(/-A INPUT -j KUBE-FIREWALL\n/);
      await expect.poll(() => node.saved()).toContain("block incoming localnet connections");
    }
    expect(await reasons(daemon)).toEqual([]);
  });

  it("security/4: health reports it as long as it cannot be restored", async () => {
    const { path, allow, refuse } = unreliableRestore();
    const daemon = await node.started(config, { env: { PATH: path } });
    refuse();
    flush();
    await expect
      .poll(() => reasons(daemon))
      .toContainEqual(expect.stringMatching(/^drifted: .*KUBE-FIREWALL/));
    expect(await neighbour()).toBe("reached");
    allow();
    await expect.poll(() => reasons(daemon)).toEqual([]);
    expect(await neighbour()).toBe("dropped");
  });

  it("security/4: is checked every syncPeriod where the kernel sends no events", async ({ skip }) => {
    if (reasonWithoutLegacy !== null) return skip(reasonWithoutLegacy);
    node.site.netns.run("iptables-legacy", "-w", "-t", "mangle", "-N", "KUBE-KUBELET-CANARY");
    await node.started(config);
    expect(await neighbour()).toBe("dropped");
    flush("iptables-legacy");
    expect(await neighbour()).toBe("reached");
    await expect.poll(neighbour).toBe("dropped");
  });

  it("security/4: is in place before loopback addresses are opened", async () => {
    const localnet = () => node.world.node.run("sysctl", "-n", "net.ipv4.conf.all.route_localnet").trim();
    expect(localnet()).toBe("0");
    const { code } = await node.site.finish({ config, args: ["--init-only"] });
    expect([code, localnet()]).toEqual([0, "1"]);
    expect(await neighbour()).toBe("dropped");
  });

  /** An `iptables-restore` that fails on demand. */
  function unreliableRestore() {
    const path = node.site.pathWithout(/^iptables-restore$/);
    const refusal = join(node.site.folder, "refuse");
    const restore = join(path, "iptables-restore");
    const real = node.site.netns.run("sh", "-c", "command -v iptables-restore").trim();
    const script = `#!/bin/sh\n[ -e ${refusal} ] && { echo refused >&2; exit 1; }\nexec ${real} "$@"\n`;
    writeFileSync(restore, script);
    chmodSync(restore, 0o755);
    return {
      path,
      refuse: () => writeFileSync(refusal, ""),
      allow: () => existsSync(refusal) && rmSync(refusal),
    };
  }
});
