// Golden tests of the read-only commands: text and JSON on the bundled example, and usage errors.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ApiServer } from "../playground/api/server.ts";
import { playground } from "../playground/command.ts";
import { helpLines } from "../playground/commands.ts";
import { diff } from "../src/cli/commands/diff.ts";
import { explain } from "../src/cli/commands/explain.ts";
import { commands, referencePage } from "../src/cli/commands/index.ts";
import type { CommandWorld } from "../src/cli/commands/kube-proxy.ts";
import { render, renderSpec } from "../src/cli/commands/render.ts";
import { run } from "../src/cli/commands/run.ts";
import { printStatus, status } from "../src/cli/commands/status.ts";
import { offersOf } from "../src/cli/completion.ts";
import { dispatch } from "../src/cli/dispatch.ts";
import { readCommandLine, requestsHelp, splitFlags } from "../src/cli/flags.ts";
import { helpText } from "../src/cli/help.ts";
import { rowOf } from "../src/cli/status-row.ts";
import { withUsageErrors } from "../src/cli/usage-error.ts";
import { writeConfig } from "../src/config/file/write.ts";
import { gitVersion } from "../src/config/version.ts";
import { defaultConfig } from "../src/explain/node-routes.ts";
import { HostError } from "../src/host/error.ts";
import { playgroundSocket } from "../src/inspect/target.ts";
import { serveStatus } from "../src/observe/status/socket.ts";
import type { Status } from "../src/observe/status/status.ts";
import type { PaceReport } from "../src/sync/pace.ts";

const root = join(import.meta.dirname, "..");
const shop = ["--source", `files:${join(root, "test/support/shop")}`, "--node=node-a"];
const scratch = mkdtempSync(join(tmpdir(), "turnout-commands-"));
afterAll(() => rmSync(scratch, { recursive: true }));

type Run = (argv: readonly string[], world: CommandWorld, signal: AbortSignal) => Promise<number>;

async function outputOf(
  command: Run,
  ...argv: string[]
): Promise<{ code: number; out: string; err: string }> {
  const printed = { out: "", err: "" };
  const world = {
    version: "0.0.0",
    environment: {},
    clock: { wall: () => 1_000_000 },
    stdout: (text: string) => {
      printed.out += text;
    },
    stderr: (text: string) => {
      printed.err += text;
    },
  } as unknown as CommandWorld;
  const code = await command(argv, world, new AbortController().signal);
  return { code, ...printed };
}

const golden = (name: string) => join(root, "test/golden/commands", name);

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

describe("an error of the host", () => {
  it("is reported in one line", async () => {
    const refuse = (_: readonly string[], world: CommandWorld) =>
      withUsageErrors("diff", world, async () => {
        throw new HostError("unavailable", "Cannot read the table: EPERM");
      });
    const { code, err } = await outputOf(refuse);
    expect(code).toBe(1);
    expect(err).toMatch(/^turnout diff: Cannot read the table: EPERM(; run as root)?\n$/);
  });
});

describe("arguments", () => {
  it("accept every spelling of a flag", async () => {
    const plain = await outputOf(explain, "outside", "nodeport:30080", ...shop, "-o", "json");
    for (const spelling of [["-ojson"], ["-o=json"], ["--output=json"], ["--output", "json"]])
      expect(await outputOf(explain, ...shop, ...spelling, "--", "outside", "nodeport:30080")).toEqual(plain);
  });

  it("name a protocol where a Service has the port twice", async () => {
    const { out } = await outputOf(explain, "pod:10.0.1.9", "svc/shop/web:80/tcp", ...shop);
    expect(out).toContain("172.30.0.10:80/tcp");
  });

  it.each([
    ["node-z", "; did you mean --node=node-a?"],
    ["worker", "; nodes in this cluster: node-a"],
  ])("with an unknown node %s print a warning", async (node, hint) => {
    const { code, err } = await outputOf(
      explain,
      "outside",
      "172.30.0.10:80",
      ...shop.slice(0, 2),
      "--node",
      node,
    );
    const unknown = `! Node "${node}" not found: its addresses, pod networks and zone are unknown`;
    expect({ code, err }).toEqual({ code: 0, err: `${unknown}${hint}\n` });
  });

  it("list at most ten nodes", async () => {
    const file = join(scratch, "nodes.yaml");
    const nodes = async (count: number) => {
      const items = Array.from({ length: count }, (_, i) => ({ metadata: { name: `n${i}` } }));
      writeFileSync(file, JSON.stringify({ kind: "NodeList", apiVersion: "v1", items }));
      const other = (await outputOf(render, `--source=files:${file}`, "--node=worker")).err.trim();
      return [other.split("unknown")[1], (await outputOf(render, `--source=files:${file}`)).err.trim()];
    };
    expect(await nodes(0)).toEqual(["", "turnout render: --node is required, for example --node=node-a"]);
    const ten = "n0, n1, n10, n11, n2, n3, n4, n5, n6, n7";
    expect(await nodes(12)).toEqual([
      `; nodes in this cluster: ${ten} and 2 more`,
      `turnout render: --node is required; nodes in this cluster: ${ten} and 2 more`,
    ]);
  });
});

describe("the configuration", () => {
  const file = join(scratch, "config.yaml");
  const write = (fields: object) =>
    writeFileSync(
      file,
      JSON.stringify({
        apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
        kind: "KubeProxyConfiguration",
        ...fields,
      }),
    );
  const traceOf = async (...argv: string[]) =>
    JSON.parse((await outputOf(explain, ...argv, "-o", "json")).out);
  const [source] = [shop.slice(0, 2)];

  it("of --config applies: its mode, its settings, its node", async () => {
    write({ mode: "iptables", hostnameOverride: "node-a", iptables: { masqueradeAll: true } });
    const { mode, node, candidates } = await traceOf(
      "pod:10.0.1.9",
      "svc/shop/web",
      ...source,
      "--config",
      file,
    );
    expect({ mode, node, ...candidates[0] }).toMatchObject({
      mode: "iptables",
      node: "node-a",
      masquerade: true,
      because: "sees this node: masqueradeAll is on",
    });
  });

  it("is adapted to --mode, without the defaults of nftables mode", async () => {
    write({ mode: "nftables", nftables: { masqueradeAll: true }, clusterCIDR: "10.0.0.0/8" });
    const argv = ["pod:10.0.2.9", "127.0.0.1:30080", ...shop, "--config", file];
    expect(await traceOf(...argv)).toMatchObject({ mode: "nftables", outcome: "pass", sender: "pod" });
    const changed = await traceOf(...argv, "--mode=iptables");
    expect(changed).toMatchObject({ mode: "iptables", outcome: "forward", sender: "pod" });
    expect(changed.candidates[0].because).toContain("masqueradeAll");
    const other = await traceOf(...argv, "--mode=iptables", "--cluster-cidr=10.99.0.0/16");
    expect(other).toMatchObject({ sender: "outside" });
  });

  it.each([
    [["--config=/nonexistent/config.yaml"], "cannot read /nonexistent/config.yaml"],
    [["--config", file], "mode"],
  ])("reports the usage error in %j", async (argv, answer) => {
    write({ mode: "ebpf" });
    const { code, err } = await outputOf(explain, "outside", "nodeport:30080", ...shop, ...argv);
    expect(code).toBe(1);
    expect(err).toContain(answer);
    expect(err.trim().split("\n")).toHaveLength(1);
  });
});

describe("diff", () => {
  it("lists the packets that are handled differently", async () => {
    const file = join(scratch, "new.yaml");
    const text = readFileSync(join(root, "test/support/shop/shop.yaml"), "utf8");
    writeFileSync(
      file,
      text.replace("nodePort: 30080", "nodePort: 30090").replace("[10.0.2.1]", "[10.0.2.7]"),
    );
    const against = `--against=files:${file}`;
    const changed = await outputOf(diff, ...shop, against);
    expect(changed.code).toBe(3);
    await expect(changed.out).toMatchFileSnapshot(golden("diff.txt"));
    const json = await outputOf(diff, ...shop, against, "-o", "json");
    await expect(json.out).toMatchFileSnapshot(golden("diff.json.txt"));
  });

  it("prints one line when nothing changes", async () => {
    const { code, out } = await outputOf(diff, ...shop, `--against=${shop[1]}`);
    expect({ code, out }).toEqual({ code: 0, out: "No packet is handled differently.\n" });
  });

  it("does not compare with a file that cannot be read", async () => {
    const file = join(scratch, "broken.yaml");
    writeFileSync(file, "a: [");
    const { code, err, out } = await outputOf(diff, ...shop, `--against=files:${file}`);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(
      /^turnout diff: cannot compare: .*broken\.yaml:\d+: cannot be read: .*; nothing in it counts\n$/,
    );
    const other = await outputOf(
      explain,
      "node",
      "192.0.2.1:80",
      `--source=${shop[1]},${file}`,
      "--node=node-a",
    );
    expect(other.code).toBe(0);
    expect(other.err).toMatch(/^! .*broken\.yaml:\d+: cannot be read: .*; nothing in it counts\n$/);
  });

  it("warns when one side does not have the node", async () => {
    const file = join(scratch, "no-node.yaml");
    const documents = readFileSync(join(root, "test/support/shop/shop.yaml"), "utf8").split("\n---\n");
    writeFileSync(file, documents.filter((each) => !each.includes("kind: Node\n")).join("\n---\n"));
    const { err } = await outputOf(diff, ...shop, `--against=files:${file}`);
    expect(err).toBe(
      `! Node "node-a" not found in files:${file}: its addresses, pod networks and zone are unknown\n`,
    );
  });

  it("requires something to compare with", async () => {
    expect((await outputOf(diff, ...shop)).err).toContain("--against=files:new.yaml");
    expect((await outputOf(diff, "a.yaml", "b.yaml")).err).toContain(
      "--source=files:examples/shop --against=",
    );
    expect((await outputOf(diff, ...shop, "--live", "--against=files:x")).err).toContain(
      "cannot be combined",
    );
  });
});

describe("render", () => {
  it.each(["routes", "nftables", "iptables", "ipvs", "userspace"])("-o %s", async (output) => {
    const { out, err } = await outputOf(render, ...shop, "-o", output);
    await expect(out).toMatchFileSnapshot(golden(`render-${output}.txt`));
    expect(err).toContain("not-an-address");
  });

  it("-o json: the Routes as data", async () => {
    const { out } = await outputOf(render, ...shop, "-o", "json");
    await expect(out).toMatchFileSnapshot(golden("render-routes.json.txt"));
  });

  it("-o json with a mode: its Plan as data", async () => {
    const planOf = async (mode: string) =>
      JSON.parse((await outputOf(render, ...shop, `--mode=${mode}`, "-o", "json")).out) as Record<
        string,
        object
      >;
    const nftables = await planOf("nftables");
    expect(Object.keys(nftables)).toEqual(["ipv4", "ipv6"]);
    expect(Object.keys(nftables.ipv4!)).toEqual(["sets", "chains", "counters", "elements", "spreads"]);
    expect(nftables.ipv4).toMatchObject({
      elements: {
        "service-ips": expect.arrayContaining([
          { set: "service-ips", key: "172.30.0.10 . tcp . 80", data: "goto pick/tcp/2", comment: null },
        ]),
      },
    });
    const iptables = await planOf("iptables");
    expect(Object.keys(iptables)).toEqual(["ipv4", "ipv6"]);
    expect(Object.keys(iptables.ipv4!)).toContain("nat");
  });

  it.each([
    [["-o", "yaml"], "-o must be routes, json, nftables"],
    [["everything"], 'unexpected argument "everything"; example: turnout render'],
    [["nftable"], 'unexpected argument "nftable"; did you mean -o nftables?'],
    [["routes", "json"], 'unexpected argument "routes"; did you mean -o routes?'],
    [["--mode=ebpf"], "nftables"],
  ])("reports the usage error in %j", async (argv, answer) => {
    const { code, err } = await outputOf(render, ...shop, ...argv);
    expect(code).toBe(1);
    expect(err).toContain(answer);
  });

  it("reports a NodePort conflict once, not once per family", async () => {
    const file = join(scratch, "conflict.yaml");
    const web = (name: string, n: number) =>
      JSON.stringify({
        apiVersion: "v1",
        kind: "Service",
        metadata: { name, namespace: "shop" },
        spec: {
          type: "NodePort",
          clusterIP: `172.30.0.${n}`,
          clusterIPs: [`172.30.0.${n}`, `fd30::${n}`],
          ports: [{ name: "http", port: 80, nodePort: 30080 }],
        },
      });
    writeFileSync(file, `${web("a", 1)}\n---\n${web("b", 2)}\n`);
    const { out } = await outputOf(render, `--source=files:${file}`, "--node=node-a");
    expect(out.split("\n").filter((line) => line.includes("!"))).toEqual([
      "  ! nodePort *:30080/tcp is held by shop/a:http; shop/b:http is not served there",
    ]);
  });
});

describe("run", () => {
  it.each([
    [
      ["--sorce=api"],
      "unknown flag: --sorce (did you mean --source?); see turnout run --help and bin/kube-proxy --help",
    ],
    [["--proxymode=ipvs"], "unknown flag: --proxymode (did you mean --proxy-mode?);"],
    [["--bogus"], "unknown flag: --bogus;"],
    [["-v", "x"], '"x" is not a whole number'],
    [["now"], 'unexpected argument "now"; turnout run takes only flags'],
    [["--source"], "--source requires a value"],
    [["--source=nowhere"], "files:PATH"],
    [[`--source=${join(root, "test/support/shop")}`], "did you mean files:"],
    [["--nftables-ownership=mine"], '--nftables-ownership must be plain or owned, not "mine"'],
    [["--health-answers="], '--health-answers must be honest or upstream, not ""'],
    [["--config-changes=never"], '--config-changes must be restart, apply or apply-live-only, not "never"'],
  ])("reports the usage error in %j", async (argv, answer) => {
    const { code, err, out } = await outputOf(run, ...argv);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^turnout run: .*\n$/);
    expect(err).toContain(answer);
  });
});

describe("status", () => {
  const state: Status = {
    pid: 42,
    version: "v1.37.1",
    node: "node-a",
    mode: "nftables",
    families: ["ipv4"],
    source: "api",
    configuration: "kind: KubeProxyConfiguration\nmode: nftables\n",
    ownership: "plain",
    startedAt: 880_000,
    waits: null,
    lastSuccess: { ipv4: 990_000 },
    syncs: [
      {
        family: "ipv4",
        trigger: "change",
        startedAt: 989_998,
        finishedAt: 990_000,
        changedPorts: 1,
        servicePorts: 5,
        endpoints: 8,
        operations: 2,
        bytes: 300,
        readBack: false,
        outcome: { kind: "ok", refused: [] },
        objects: ["EndpointSlice shop/web-1 modified"],
      },
    ],
    latency: { p50: 3.2, p99: 12, samples: 250 },
    limits: [
      { name: "conntrack", unit: "entries", used: 120, limit: 262_144 },
      { name: "memory", unit: "bytes", used: 90 * 2 ** 20, limit: null },
    ],
    events: [
      {
        reason: "FailedToStartServiceHealthcheck",
        type: "Warning",
        regarding: { kind: "Service", namespace: "shop", name: "web" },
        note: "Cannot open health check node port 31000 on node node-a: in use",
        at: 890_000,
        count: 3,
        lastAt: 970_000,
        delivery: "sent",
      },
      {
        reason: "Starting",
        type: "Normal",
        regarding: { kind: "Node", name: "node-a" },
        note: "",
        at: 880_000,
        count: 1,
        lastAt: 880_000,
        delivery: "waiting",
      },
    ],
    pace: { ipv4: { kind: "cost", costMs: 2.13, budgetMs: 281.4, gapMs: 0, reason: "budget" } },
    drift: [{ at: 950_000, family: "ipv4", differences: 3, what: "nft changed our table" }],
    problems: [
      {
        kind: "invalid-address",
        object: "Service shop/broken",
        field: "spec.externalIPs[1]",
        message: "is no address",
      },
    ],
    watches: {
      Service: {
        synced: true,
        refused: false,
        lastEventAt: 985_000,
        lastError: null,
        failing: false,
        lastRestart: null,
        reconnects: 0,
        failures: 0,
        relists: 0,
        watchSince: 900_000,
        encoding: "protobuf",
        heardAt: 1000,
      },
    },
  };

  it("prints the state of the daemon", async () => {
    await expect(printStatus(state, 1_000_000)).toMatchFileSnapshot(golden("status.txt"));
  });

  it.for<[PaceReport, string]>([
    [{ kind: "period", gapMs: 1000 }, "1000 ms between Syncs, which minSyncPeriod sets"],
    [
      { kind: "cost", costMs: 2.13, budgetMs: 0, gapMs: 12.07, reason: "cost" },
      "12 ms after the last Sync, which used 2.1 ms of CPU: Syncs may use 15 % of one core",
    ],
    [
      { kind: "cost", costMs: 412.3, budgetMs: 0, gapMs: 1000, reason: "limit" },
      "1000 ms after the last Sync, which used 412 ms of CPU: the longest gap",
    ],
    [
      { kind: "cost", costMs: 3, budgetMs: 200, gapMs: 1000, reason: "failure" },
      "1000 ms after the last Sync, which failed",
    ],
  ])("prints how Syncs are paced and why: %j", ([pace, text]) => {
    const lines = printStatus({ ...state, pace: { ipv4: pace } }, 1_000_000).split("\n");
    expect(lines).toContain(`pace      ipv4: ${text}`);
  });

  it("prints what a starting daemon waits for, and nothing that is not known yet", () => {
    const lastError = { message: "connect ECONNREFUSED 127.0.0.1:6443", at: 998_000 };
    const silent = {
      ...state.watches.Service!,
      synced: false,
      lastEventAt: null,
      watchSince: null,
      encoding: null,
      lastError,
    };
    const starting = { ...state, families: [], syncs: [], lastSuccess: {}, watches: { Node: silent } };
    const waits = { for: 'Node "node-a" to be there, with an address', since: 990_000, until: 1_020_000 };
    expect(printStatus({ ...starting, waits }, 1_000_000).split("\n")).toEqual([
      "daemon    v1.37.1, process 42, up 2 min",
      "node      node-a, nftables mode",
      "source    api",
      'waiting   for Node "node-a" to be there, with an address: 10 s so far, at most 20 s more',
      "watches   Node: not synced yet, not open, last error 2 s ago: connect ECONNREFUSED 127.0.0.1:6443",
      "",
    ]);
    expect(printStatus({ ...state, waits: { ...waits, until: null } }, 1_000_000)).toContain(
      'waiting   for Node "node-a" to be there, with an address: 10 s so far\napplied',
    );
  });

  it("prints health with its reasons", () => {
    const reason = {
      kind: "refused",
      family: "ipv4",
      since: 940_000,
      message: "shop/web: no space",
    } as const;
    const health = { healthy: true, reasons: [reason], watchAges: {} };
    expect(printStatus({ ...state, health }, 1_000_000)).toContain(
      "health    healthy\n          refused, ipv4, for 60 s: shop/web: no space\napplied",
    );
    expect(printStatus({ ...state, health: { ...health, healthy: false } }, 1_000_000)).toContain(
      "health    UNHEALTHY\n",
    );
  });

  const healthy = { healthy: true, reasons: [], watchAges: { services: 4_000, nodes: 61_000 } };
  const late = { kind: "late", family: null, since: 0, message: "a\tb\nc" } as const;
  it.each<[string, Partial<Status>, string[]]>([
    ["a healthy daemon", { drift: [] }, ["ok", "10 s ago", "none", "61 s"]],
    ["drift", {}, ["ok", "10 s ago", "3 repaired, last 50 s ago", "61 s"]],
    [
      "a daemon that is late, on one line",
      { drift: [], health: { ...healthy, healthy: false, reasons: [late] } },
      ["unhealthy: late: a\\tb\\nc", "10 s ago", "none", "61 s"],
    ],
    ["a family without a Sync", { drift: [], families: ["ipv4", "ipv6"] }, ["ok", "not yet", "none", "61 s"]],
    [
      "a daemon that starts",
      { drift: [], health: healthy, waits: { for: "the Node", since: 990_000, until: null } },
      ["starting: waits 10 s for the Node", "10 s ago", "none", "61 s"],
    ],
  ])("prints one line of tab-separated fields: %s", (_, changes, fields) => {
    expect(rowOf({ ...state, health: healthy, ...changes }, 1_000_000)).toBe(
      `${["node-a", "nftables", ...fields, "v1.37.1"].join("\t")}\n`,
    );
  });

  it("groups watches with the same state", () => {
    const service = state.watches.Service!;
    const watches = { Service: service, Node: service, EndpointSlice: { ...service, synced: false } };
    const lines = printStatus({ ...state, watches }, 1_000_000).split("\n");
    const first = lines.findIndex((line) => line.startsWith("watches"));
    expect(lines.slice(first, first + 3)).toEqual([
      "watches   Service, Node: synced, open for 100 s, protobuf, last event 15 s ago",
      "          EndpointSlice: not synced yet, open for 100 s, protobuf, last event 15 s ago",
      expect.stringMatching(/^drift/),
    ]);
  });

  it("prints at most 20 Problems and the number of others", () => {
    const problems = Array.from({ length: 10_000 }, (_, i) => ({
      ...state.problems[0]!,
      object: `Service shop/s${i}`,
    }));
    const lines = printStatus({ ...state, problems }, 1_000_000)
      .trimEnd()
      .split("\n");
    expect(lines.filter((line) => line.includes("is no address"))).toHaveLength(20);
    expect(lines.at(-1)).toBe("          and 9980 more; -o json lists all");
  });

  it("prints the answer of the socket as JSON", async () => {
    const socket = join(scratch, "sockets", "status.sock");
    const close = await serveStatus(socket, () => ({
      "/": () => state,
      "/relays": () => ({}),
      "/view": () => null,
      "/traffic": () => null,
      "/cluster": () => [null],
      "/history": () => [],
    }));
    try {
      const json = await outputOf(status, `--source=daemon:${socket}`, "-o", "json");
      expect({ code: json.code, err: json.err }).toEqual({ code: 0, err: "" });
      await expect(json.out).toMatchFileSnapshot(golden("status.json.txt"));
      const text = await outputOf(status, `--source=daemon:${socket}`);
      expect(text.out).toBe(printStatus(state, 1_000_000));
    } finally {
      close();
    }
  });

  it.each([
    ["of another version is not queried; its source is read", gitVersion("0.0.1"), [], 0, "shop/web:http"],
    ["is not queried with --fresh", gitVersion("0.0.0"), ["--fresh"], 0, "shop/web:http"],
    ["is not queried with --anew, the earlier name", gitVersion("0.0.0"), ["--anew"], 0, "shop/web:http"],
    [
      "that has not read the cluster yet is reported",
      gitVersion("0.0.0"),
      [],
      1,
      "the daemon has not read the cluster yet",
    ],
  ])("a daemon %s", async (_, version, flags, code, text) => {
    const socket = join(scratch, "sockets", "young.sock");
    const configuration = writeConfig(defaultConfig("nftables"));
    const facts = { ...state, node: "node-a", source: shop[1]!, version, configuration };
    const answers = {
      "/": () => facts,
      "/relays": () => ({}),
      "/view": () => null,
      "/traffic": () => null,
      "/cluster": () => [null],
      "/history": () => [],
    };
    const close = await serveStatus(socket, () => answers);
    try {
      const { code: ended, out, err } = await outputOf(render, `--source=daemon:${socket}`, ...flags);
      expect({ ended, text: `${out}${err}` }).toEqual({ ended: code, text: expect.stringContaining(text) });
    } finally {
      close();
    }
  });

  it.each([["render"], ["explain", "node", "svc/shop/web"]])(
    "reports a daemon that exits mid-response to %j",
    async (name, ...argv) => {
      const socket = join(scratch, "sockets", "short.sock");
      const configuration = writeConfig(defaultConfig("nftables"));
      const facts = {
        ...state,
        node: "node-a",
        source: shop[1]!,
        version: gitVersion("0.0.0"),
        configuration,
      };
      const end = () => {
        close();
        return null;
      };
      const answers = {
        "/": () => facts,
        "/relays": () => ({}),
        "/view": end,
        "/traffic": () => null,
        "/cluster": () => [end()],
        "/history": () => [],
      };
      const close = await serveStatus(socket, () => answers);
      const command = name === "render" ? render : explain;
      const { code, err } = await outputOf(command, ...argv, `--source=daemon:${socket}`);
      expect({ code, err }).toEqual({
        code: 1,
        err: expect.stringMatching(/the daemon at .* closed the connection: .*; retry/),
      });
    },
  );

  it.each([
    [["today"], 'unexpected argument "today"; example: turnout status'],
    [["--soruce=daemon"], "did you mean --source?"],
    [["--source=files:x"], "--source must be daemon, daemon:SOCKET or playground"],
    [["--source=daemons"], '--source must be daemon, daemon:SOCKET or playground, not "daemons"'],
    [["--source=daemon:/nonexistent/sock", "-o", "yaml"], "-o must be text, json or row"],
  ])("reports the usage error in %j", async (argv, answer) => {
    const { code, err } = await outputOf(status, ...argv);
    expect(code).toBe(1);
    expect(err).toContain(answer);
  });

  it("names the nodes of the playground", () => {
    expect(playgroundSocket(7, "node-b")).toBe("/run/turnout-playground/7/node-b.sock");
    expect(() => playgroundSocket(7, "node-z")).toThrow(
      'the playground has no node "node-z"; use --node=node-a or --node=node-b',
    );
  });

  it("reports that no daemon is running", async () => {
    const { code, err } = await outputOf(status, "--source=daemon:/nonexistent/sock");
    expect(code).toBe(1);
    expect(err).toMatch(
      /no daemon is running on this machine: \/nonexistent\/sock does not exist; start one with turnout run/,
    );
  });
});

describe("the command", () => {
  const outputFor = (...argv: string[]) =>
    outputOf((args, world) => dispatch(args, world, () => new AbortController().signal), ...argv);

  it("is dispatched by name, and prints its help in two ways", async () => {
    expect((await outputFor("explain")).err).toContain("FROM and TO are required");
    expect((await outputFor("help", "render")).out).toBe(helpText(renderSpec));
    expect((await outputFor()).out).toContain("turnout COMMAND [flags]");
    expect((await outputFor("--version")).out).toBe("turnout 0.0.0\n");
  });

  it.each([
    [["expalin"], "did you mean turnout explain?"],
    [["help", "rendr"], "did you mean turnout render?"],
    [["fly"], "commands: playground, explain"],
    [["constructor"], "commands: playground, explain"],
  ])("reports the usage error in %j", async (argv, answer) => {
    const { code, out, err } = await outputFor(...argv);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(answer);
  });
});

describe("the reference", () => {
  it("is docs/commands.md", async () => {
    await expect(referencePage(helpLines())).toMatchFileSnapshot(join(root, "docs/commands.md"));
  });

  it.each([...commands])("turnout %s --help prints its help", async (_, { run, spec }) => {
    expect(await outputOf(run, "--help")).toEqual({ code: 0, out: helpText(spec), err: "" });
  });

  it.each([
    [["tcsh"], 'unsupported shell "tcsh"; use bash, zsh or fish'],
    [[], "a shell is required; use bash, zsh or fish"],
    [["bash", "zsh"], 'unexpected argument "zsh"'],
  ])("reports the usage error in turnout completion %j", async (argv, answer) => {
    const { code, err } = await outputOf(commands.get("completion")!.run, ...argv);
    expect(code).toBe(1);
    expect(err).toContain(answer);
  });

  it.each([
    [["--mode=foo"], "--mode must be nftables, iptables, ipvs or userspace, not"],
    [["--onec"], "did you mean --once?"],
    [["--port=70000"], "--port=7443"],
    [["--script=/nonexistent/x"], "cannot read /nonexistent/x: no such file"],
    [["--manifests"], "--manifests=shop.yaml"],
    [["-o", "yaml"], "text or json"],
  ])("reports the usage error in turnout playground %j", async (argv, answer) => {
    const { code, err } = await outputOf(playground, ...argv);
    expect(code).toBe(1);
    expect(err).toContain(process.getuid?.() === 0 || !argv[0]!.startsWith("--script") ? answer : "root");
  });

  it.each(["bash", "zsh", "fish"])("completes in %s", async (shell) => {
    const { code, out } = await outputOf(commands.get("completion")!.run, shell);
    expect(code).toBe(0);
    for (const word of ["playground", "explain", "live", "against"]) expect(out).toContain(word);
  });

  const offered = offersOf([...commands.values()].map(({ spec }) => spec));
  const spellings = offered.flatMap(({ command, flags }) =>
    flags.flatMap(({ name, short, value, choices, suggestions }): [string, string[]][] => {
      const names = [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
      if (value === undefined) return names.map((each) => [command, [each]]);
      const values = choices ?? suggestions ?? ["x"];
      return names.flatMap((each) => values.map((text): [string, string[]] => [command, [each, text]]));
    }),
  );

  it.each(spellings)("turnout %s accepts %j, which completion offers", (name, argv) => {
    const { spec } = commands.get(name)!;
    if (requestsHelp(argv)) return;
    expect(Object.keys(readCommandLine(spec, argv).flags)).toHaveLength(1);
    expect(splitFlags(spec.flags, argv).rest).toEqual([]);
  });

  it("offers in bash exactly the flags that help lists, switches without =", async () => {
    const { out } = await outputOf(commands.get("completion")!.run, "bash");
    for (const [name, { spec }] of commands) {
      const [, words = ""] = new RegExp(`^      ${name}\\) words="([^"]*)"`, "m").exec(out) ?? [];
      const flags = words.split(" ").filter((word) => word.startsWith("-"));
      const listed = [...helpText(spec).matchAll(/^ {2}(?:(-\w),| {3}) (--[a-z-]+=?)/gm)];
      expect([name, flags]).toEqual([
        name,
        listed.flatMap(([, short, long = ""]) => [short ?? [], long].flat()),
      ]);
    }
    expect(out).toContain(" --live ");
    expect(out).not.toMatch(/--(live|once|fresh|help)=|--anew/);
  });

  it.each([
    ["zsh", /compadd -S "=" -- ([^;]*);/g],
    ["fish", /-l (?:live|once|fresh|help) -[rx]/g],
  ])("offers switches without = in %s", async (shell, pattern) => {
    const { out } = await outputOf(commands.get("completion")!.run, shell);
    const withValue = [...out.matchAll(pattern)].map(([text]) => text).join(" ");
    expect(withValue).not.toMatch(/live|once|fresh|help/);
    expect(out).not.toContain("anew");
  });

  it("completes words in bash", () => {
    const script = join(scratch, "completion.bash");
    return outputOf(commands.get("completion")!.run, "bash").then(({ out }) => {
      const completion = (words: string, at: number) =>
        `COMP_WORDS=(${words}); COMP_CWORD=${at}; _turnout; echo "\${COMPREPLY[*]}"`;
      const questions = [
        completion("turnout ex", 1),
        completion("turnout diff --ag", 2),
        completion("turnout explain --live --mode = i", 5),
        completion("turnout render -o ", 3),
        completion("turnout doctor m", 2),
        completion("turnout explain --source = files : exam", 6),
        completion("turnout help st", 2),
      ];
      writeFileSync(script, `${out}\n${questions.join("\n")}\n`);
      expect(execFileSync("bash", [script], { encoding: "utf8" }).split("\n")).toEqual([
        "explain",
        "--against=",
        "iptables ipvs",
        "routes json nftables iptables ipvs userspace",
        "migrate",
        "",
        "status",
        "",
      ]);
    });
  });
});
