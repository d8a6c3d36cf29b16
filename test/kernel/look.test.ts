// explain --live and diff --live ask the running daemon for its configuration: whatever it is, the kernel agrees with them.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { shop } from "./shop.ts";
import { nodeObject, openSite, reasonNotToRun, type Site } from "./site.ts";

const reason = reasonNotToRun();
const turnout = join(import.meta.dirname, "..", "..", "bin", "turnout");

const unusual = {
  clusterCIDR: "10.180.0.0/16,fd00:180::/48",
  nodePortAddresses: ["192.168.0.0/24", "2001:db8::/64"],
  featureGates: { AllowServiceExternalIPs: false },
  iptables: { masqueradeAll: true, masqueradeBit: 5, minSyncPeriod: "10ms", syncPeriod: "10s" },
  nftables: { masqueradeAll: true, masqueradeBit: 6, minSyncPeriod: "10ms", syncPeriod: "10s" },
};

describe("looking at a daemon with settings of its own", () => {
  let site: Site;
  beforeEach(async ({ skip }) => {
    skip(reason !== null, reason ?? "");
    site = await openSite();
    await site.openApi();
    const spec = { type: "NodePort", externalIPs: ["192.168.99.1"] };
    for (const object of [nodeObject(), ...shop(spec)]) site.api.put(object);
  });
  afterEach(() => site?.close());

  /** What a command says, and its exit code. It must not block: the API server is in this process. */
  const said = async (...argv: string[]) => {
    const child = spawn("ip", ["netns", "exec", site.netns.name, turnout, ...argv], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += String(chunk)));
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    return { code, text };
  };

  it.for(["nftables", "iptables"])("%s mode", async (mode) => {
    const socket = join(site.folder, "status.sock");
    const daemon = site.start({
      program: "turnout run",
      config: { mode, ...unusual },
      args: [`--status-socket=${socket}`],
    });
    await daemon.ready();
    const source = `--source=daemon:${socket}`;
    expect(await said("diff", "--live", source)).toEqual({
      code: 0,
      text: "The kernel holds what it should.\n",
    });
    const told = await said("explain", "pod:10.180.0.9", "svc/shop/web", source, "--live");
    expect(told.text).toContain("masqueradeAll is on");
    expect(told.text).toContain("agrees: it does the same");
    expect(told.code).toBe(0);
    const outside = await said("explain", "outside", "192.168.99.1:80", source, "--live", "-o", "json");
    expect(JSON.parse(outside.text)).toMatchObject({ mode, outcome: "pass", kernel: { agrees: true } });
    const header = { apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration" };
    const usual = join(site.folder, "usual.json");
    writeFileSync(usual, JSON.stringify({ ...header, mode }));
    expect((await said("diff", "--live", source, `--config=${usual}`)).code).toBe(3);
  });
});
