// Golden tests of `turnout explain` on the bundled example: text and JSON, and the forms of FROM and TO.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ApiServer } from "../playground/api/server.ts";
import { explain } from "../src/cli/commands/explain.ts";
import { golden, outputOf, shop } from "./support/shop-commands.ts";

const root = join(import.meta.dirname, "..");
const scratch = mkdtempSync(join(tmpdir(), "turnout-commands-"));
afterAll(() => rmSync(scratch, { recursive: true }));

describe("explain", () => {
  it.each([
    ["hairpin", "pod:10.0.1.1", "svc/shop/web"],
    ["local-policy", "outside", "nodeport:30081"],
    ["source-ranges", "outside:203.0.113.200", "198.51.100.10:80"],
    ["zone", "pod:10.0.1.9", "svc/shop/stock:grpc"],
    ["no-endpoint", "node", "svc/shop/broken"],
    ["no-such-port", "pod:10.0.1.9", "172.30.0.10:81"],
    ["ipv6", "pod:fd00:1::9", "svc/shop/web:80"],
    ["not-ours", "pod:10.0.1.9", "192.0.2.1:443"],
    ["cluster-ip-from-outside", "outside", "svc/shop/web"],
    ["address-of-a-pod", "10.0.1.9", "svc/shop/web"],
    ["node-port-of-another-node", "outside", "192.168.0.77:30080"],
    ["node-port-on-loopback", "node", "127.0.0.1:30080"],
    ["ipv6-from-outside", "outside", "[2001:db8::2]:30080"],
  ])("%s", async (name, from, to) => {
    const text = await outputOf(explain, from, to, ...shop);
    expect(text.err).toBe("");
    await expect(text.out).toMatchFileSnapshot(golden(`explain-${name}.txt`));
    const json = await outputOf(explain, from, to, ...shop, "-o", "json");
    await expect(json.out).toMatchFileSnapshot(golden(`explain-${name}.json.txt`));
  });

  it.each([
    [["outside"], "FROM and TO are required, for example"],
    [["outside", "there!", ...shop], "svc/shop/web:80"],
    [["outside", "there", ...shop], "there is no Service there that Turnout serves"],
    [["Nobody!", "nodeport:30080", ...shop], "outside:203.0.113.9"],
    [
      ["outside", "svc/web", "-n", "default", ...shop],
      "no Service default/web that Turnout serves; did you mean svc/shop/web?",
    ],
    [["outside", "svc/shop/web:81", ...shop], "it has 80/tcp (http)"],
    [
      ["web-1", "svc/shop/web", ...shop],
      "files contain no pod addresses; use its address, for example pod:10.0.1.5",
    ],
    [["pod:10.0.1", "svc/shop/web", ...shop], "not an IP address"],
    [["node-b", "svc/shop/web", ...shop], "or for a node: node --node=node-b"],
    [["outside", "shop", ...shop], "shop is a namespace; use for example svc/shop/"],
    [["outside", "svc/shop/wbe", ...shop], "did you mean svc/shop/web?"],
    [["outside", "svc/shop", ...shop], "shop is a namespace; use for example svc/shop/"],
    [["outside", "svc/shop/web:80/udp", ...shop], "it has 80/tcp (http)"],
    [["outside", "172.30.0.10", ...shop], "172.30.0.10:80"],
    [["outside", "fd30::10", ...shop], "[fd30::10]:80"],
    [
      ["outside", "nodeport:30080", "extra", ...shop],
      'unexpected argument "extra"; example: turnout explain',
    ],
    [["outside", "nodeport:30080", "--sorce=files:x"], "did you mean --source?"],
    [["outside", "nodeport:30080", "-x", "shop"], 'unknown flag "-x"; see turnout explain --help'],
    [["outside", "nodeport:30080", ...shop, "--lvie"], "did you mean --live?"],
    [["outside", "nodeport:30080", ...shop, "--live=yes"], "--live takes no value"],
    [
      ["outside", "nodeport:30080", "--source", "--node=a"],
      "--source requires a value, for example --source=files:examples/shop",
    ],
    [["outside", "nodeport:30080", ...shop, "-o"], "for example -o json"],
    [["outside", "nodeport:30080", ...shop, "--cluster-cidr=foo"], "--cluster-cidr=10.0.0.0/8"],
    [
      ["outside", "nodeport:30080", `--source=${join(root, "test/support/shop")}`, "--node=a"],
      "did you mean files:",
    ],
    [["pod:10.0.1.1", "[fd30::10]:80", ...shop], "IPv4 and IPv6 do not mix"],
    [
      ["outside", "nodeport:30080", "--source=files:/nonexistent/x"],
      "--node is required, for example --node=node-a",
    ],
    [
      ["outside", "nodeport:30080", ...shop.slice(0, 2)],
      "--node is required; nodes in this cluster: node-a\n",
    ],
    [["outside", "nodeport:30080", "--source=files:/nonexistent/x", "--node=a"], "no such file or directory"],
    [
      ["outside", "nodeport:30080", "--source=kubeconfig:/nonexistent/x", "--node=a"],
      "kubeconfig /nonexistent/x",
    ],
    [["outside", "nodeport:30080", "--source=nowhere", "--node=a"], "files:PATH"],
    [["outside", "nodeport:30080", ...shop, "--mode=ebpf"], "nftables, iptables, ipvs or userspace"],
    [["outside", "nodeport:30080", ...shop, "-o", "yaml"], "text or json"],
    [["outside", "nodeport:30080", "--source=daemon:/nonexistent/sock"], "--source=playground"],
    [
      ["outside", "nodeport:30080", ...shop, "--mode=userspace", "--live"],
      "cannot read the relays: the daemon at",
    ],
  ])("reports the usage error in %j", async (argv, answer) => {
    const { code, err, out } = await outputOf(explain, ...argv);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(answer);
    expect(err.trim().split("\n")).toHaveLength(1);
  });
});

describe("explain of Services by short names", () => {
  it.each([
    ["web"],
    ["svc/web"],
    ["shop/web"],
    ["web.shop"],
    ["web", "-n", "shop"],
    ["svc/shop/web", "-n", "other"],
  ])("%j is svc/shop/web", async (...to) => {
    const short = await outputOf(explain, "pod:10.0.1.9", ...to, ...shop);
    expect(short).toEqual(await outputOf(explain, "pod:10.0.1.9", "svc/shop/web", ...shop));
    expect(short.code).toBe(0);
  });

  it("a name in several namespaces is not resolved", async () => {
    const file = join(scratch, "twice.yaml");
    const web = (namespace: string, n: number) =>
      JSON.stringify({
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: "web", namespace },
        spec: { clusterIP: `172.30.0.${n}`, clusterIPs: [`172.30.0.${n}`], ports: [{ port: 80 }] },
      });
    writeFileSync(file, `${web("a", 1)}\n---\n${web("b", 2)}\n`);
    const source = [`--source=files:${file}`, "--node=node-a"];
    const both = await outputOf(explain, "outside", "web", ...source);
    expect(both.code).toBe(1);
    expect(both.err).toContain("2 Services are named web: use svc/a/web or svc/b/web");
    expect(await outputOf(explain, "outside", "web", "-n", "b", ...source)).toMatchObject({
      code: 0,
      out: expect.stringContaining("172.30.0.2"),
    });
  });

  it("a dual-stack pod uses the address of the Service's family", async () => {
    const { code, out } = await outputOf(explain, "pod:10.0.1.9,fd00:1::9", "[fd30::10]:80", ...shop);
    expect([code, out.split("\n")[0]]).toEqual([0, expect.stringContaining("pod fd00:1::9 →")]);
  });
});

describe("explain of senders by name", () => {
  let allowed = true;
  const api = new ApiServer({ allows: ({ resource }) => allowed || resource.plural !== "pods" });
  beforeAll(async () => {
    const spec = { podCIDRs: ["10.0.1.0/24"] };
    api.put({ kind: "Node", metadata: { name: "node-a" }, spec });
    api.put({
      kind: "Pod",
      metadata: { name: "web-1", namespace: "shop" },
      spec: { nodeName: "node-a" },
      status: { podIP: "10.0.1.5" },
    });
    api.put({ kind: "Pod", metadata: { name: "late", namespace: "shop" } });
    await api.listen();
  });
  afterAll(() => api.close());

  it.each([
    ["web-1", "pod 10.0.1.5 →"],
    ["shop/web-1", "pod 10.0.1.5 →"],
    ["wbe-1", 'no node or running pod is named "wbe-1"; did you mean web-1?'],
    ["pod/web-1", "pod 10.0.1.5 →"],
    ["pod/shop/web-1", "pod 10.0.1.5 →"],
    ["pod/node-a", 'no running pod is named "node-a"'],
    ["node/node-a", "node 127.0.0.1 →"],
    ["node/web-1", 'no node is named "web-1"'],
    ["nodea", "did you mean node-a?"],
    ["late", 'no node or running pod is named "late"\n'],
    ["pod:10.0.2.9", "! 10.0.2.9 is not a pod of node-a; its own node handles its packets first"],
  ])("%s", async (from, answer) => {
    const { out, err } = await outputOf(explain, from, "192.0.2.1:80", "--source", api.url, "--node=node-a");
    expect(err + out).toContain(answer);
  });

  it("suggests an address when the API server refuses or does not respond", async () => {
    allowed = false;
    const refused = await outputOf(explain, "web-1", "192.0.2.1:80", "--source", api.url, "--node=node-a");
    expect(refused.err).toMatch(
      /^turnout explain: cannot look up web-1: .*forbidden.*; use its address, for example pod:10\.0\.1\.5\n$/,
    );
    const silent = await outputOf(
      explain,
      "web-1",
      "192.0.2.1:80",
      "--source=http://127.0.0.1:1",
      "--node=node-a",
    );
    expect(silent.err).toMatch(
      /^turnout explain: cannot look up web-1: Cannot reach .*; use its address.*\n$/,
    );
  });
});
