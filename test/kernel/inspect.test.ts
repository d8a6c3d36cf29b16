// explain --live and diff --live read the configuration of the running daemon: for any configuration the kernel agrees with them.
import { spawn } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { service } from "../objects.ts";
import type { KubeObject } from "../reference/objects.ts";
import { shop, shopSlice } from "./shop.ts";
import { type Configuration, type Daemon, eventually, nodeObject, sampleOf } from "./site.ts";
import { siteForEach } from "./site-each.ts";

const turnout = join(import.meta.dirname, "..", "..", "bin", "turnout");

const inOrder = { code: 0, text: "The kernel holds what it should.\n" };
const periods = { minSyncPeriod: "10ms", syncPeriod: "10s" };
const unusual = {
  clusterCIDR: "10.180.0.0/16,fd00:180::/48",
  nodePortAddresses: ["192.168.0.0/24", "2001:db8::/64"],
  featureGates: { AllowServiceExternalIPs: false },
  iptables: { masqueradeAll: true, masqueradeBit: 5, ...periods },
  nftables: { masqueradeAll: true, masqueradeBit: 6, ...periods },
};

describe("commands on a daemon with custom settings", () => {
  const place = siteForEach([nodeObject(), ...shop({ type: "NodePort", externalIPs: ["192.168.99.1"] })]);
  const statusSocket = () => join(place.site.folder, "status.sock");

  async function started(
    config: Configuration,
    env: Readonly<Record<string, string>> = {},
    flags: readonly string[] = [],
  ): Promise<Daemon> {
    const args = [`--status-socket=${statusSocket()}`, ...flags];
    const daemon = place.site.start({ program: "turnout run", config, args, env });
    await daemon.ready();
    return daemon;
  }

  /** What a command prints about the daemon, and its exit code. It must not block: the API server is in this process. */
  const output = async (...argv: string[]) => {
    const line = [...argv, `--source=daemon:${statusSocket()}`];
    const child = spawn("ip", ["netns", "exec", place.site.netns.name, turnout, ...line], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += String(chunk)));
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    return { code, text };
  };

  it.for([
    ["nftables", "masqueradeAll is on"],
    ["iptables", "masqueradeAll is on"],
    ["userspace", "a relay of this node connects"],
  ] as const)("%s mode", async ([mode, reason]) => {
    await started({ mode, ...unusual });
    const requests = place.site.api.seen.length;
    expect(await output("diff", "--live")).toEqual(inOrder);
    const printed = await output("explain", "pod:10.180.0.9", "svc/shop/web", "--live");
    expect(printed.text).toContain(reason);
    expect(printed.text).toContain("agrees: the kernel handles this packet the same way");
    expect(printed.code).toBe(0);
    const known = await output("explain", "pod:10.180.0.9", "svc/shop/web");
    expect(printed.text.startsWith(known.text)).toBe(true);
    // For a wrong name it checks all names.
    const mistaken = await output("explain", "pod:10.180.0.9", "svc/shop/wbe");
    expect(mistaken).toEqual({ code: 1, text: expect.stringContaining("did you mean svc/shop/web?") });
    const rendered = await output("render");
    expect(rendered.text).toContain("shop/web:http");
    // The daemon answered all of this; with --fresh the API server is read instead, with the same result.
    const { seen } = place.site.api;
    expect(seen).toHaveLength(requests);
    expect(await output("diff", "--live", "--fresh")).toEqual(inOrder);
    expect(await output("explain", "pod:10.180.0.9", "svc/shop/web", "--live", "--fresh")).toEqual(printed);
    expect(await output("render", "--fresh")).toEqual(rendered);
    expect(seen.length).toBeGreaterThan(requests);
    const outside = await output("explain", "outside", "192.168.99.1:80", "--live", "-o", "json");
    expect(JSON.parse(outside.text)).toMatchObject({ mode, outcome: "pass", kernel: { agrees: true } });
    const header = { apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration" };
    const usual = join(place.site.folder, "usual.json");
    writeFileSync(usual, JSON.stringify({ ...header, mode }));
    expect((await output("diff", "--live", `--config=${usual}`)).code).toBe(3);
  });

  it("a table that the daemon owns can be read", async () => {
    await started({ mode: "nftables" }, {}, ["--nftables-ownership=owned"]);
    expect((await output("status")).text).toContain("table owned");
    expect(await output("diff", "--live")).toEqual(inOrder);
    const { code, text } = await output("explain", "pod:10.180.0.9", "svc/shop/web", "--live");
    expect({ code, text }).toEqual({
      code: 0,
      text: expect.stringContaining("agrees: the kernel handles this packet the same way"),
    });
  });

  it("a cluster that no longer responds: the daemon reports its last state", async () => {
    await started({ mode: "nftables" });
    await place.site.api.close();
    expect(await output("diff", "--live")).toEqual(inOrder);
    expect((await output("render")).text).toContain("shop/web:http");
    expect(await output("render", "--fresh")).toEqual({
      code: 1,
      text: expect.stringContaining("Cannot read the cluster"),
    });
  });

  it("two Services that claim one address: status, log and metrics report the one that is not served", async () => {
    const daemon = await started({});
    const claim = { clusterIP: "172.30.0.99", clusterIPs: ["172.30.0.99"], externalIPs: ["192.168.99.1"] };
    const metadata = { namespace: "shop", name: "zoo" };
    const { api } = place.site;
    api.put({ apiVersion: "v1", kind: "Service", ...service(claim), metadata } as unknown as KubeObject);
    const counted = async () => sampleOf(await daemon.metrics(), 'turnout_problems{kind="conflict"}') === 1;
    await eventually(counted, "the conflict in the metrics");
    const problem =
      "externalIP 192.168.99.1:80/tcp is held by shop/web:http; shop/zoo:http is not served there";
    expect((await output("status")).text).toContain(`problems  Service shop/zoo externalIP: ${problem}\n`);
    const printed = daemon.log().split("\n");
    expect(printed.filter((line) => line.includes(problem))).toHaveLength(1);
    api.remove("Service", "shop", "zoo");
    await eventually(async () => !(await counted()), "no conflict");
  });

  it("userspace mode: relays and rules that are not as they should be are named", async () => {
    const { api, netns } = place.site;
    const programs = place.site.pathWithout(/^$/);
    await started(
      { mode: "userspace", iptables: { minSyncPeriod: "1h", syncPeriod: "1h" } },
      { PATH: programs },
    );
    // From now on it follows no change and repairs nothing.
    rmSync(join(programs, "iptables-restore"));
    const way = ["explain", "pod:10.180.0.9", "172.30.0.10:80", "--live"] as const;
    expect((await output(...way)).text).toMatch(
      /agrees: .*· nat: .* -j REDIRECT --to-ports (\d+)\n.*· port \1, relay shop\/web\/tcp\/http \(cluster\)\n/s,
    );

    api.put(shopSlice("web-1", { endpoints: [{ addresses: ["10.180.0.7"], conditions: { ready: true } }] }));
    await eventually(async () => (await output("diff", "--live")).code === 3, "word of the other endpoint");
    const { text } = await output("diff", "--live");
    expect(text).toContain(
      "ipv4: relay shop/web/tcp/http (cluster) leads to 10.180.0.1:8080, 10.180.1.1:8080 instead of 10.180.0.7:8080\n",
    );
    const lagging = await output(...way);
    expect(lagging.code).toBe(3);
    expect(lagging.text).toContain("expected: forward 10.180.0.7:8080 masquerade");
    expect(lagging.text).toContain(
      "found:    forward 10.180.0.1:8080 masquerade, forward 10.180.1.1:8080 masquerade",
    );

    netns.run("iptables", "-t", "nat", "-F", "KUBE-PORTALS-CONTAINER");
    expect((await output("diff", "--live")).text).toMatch(
      /^ipv4: -A KUBE-PORTALS-CONTAINER .*172\.30\.0\.10.* --to-ports \d+$/m,
    );
    expect((await output(...way)).text).toContain("found:    pass");

    netns.run("iptables", "-t", "nat", "-I", "KUBE-PORTALS-CONTAINER", ...redirect(1));
    expect((await output(...way)).text).toContain("no socket listens on port 1\n");
  });
});

/** A redirect of the Service to another port. */
function redirect(port: number): string[] {
  return [..."-d 172.30.0.10/32 -p tcp -m tcp --dport 80 -j REDIRECT --to-ports".split(" "), String(port)];
}
