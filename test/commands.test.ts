// Golden tests of the read-only commands on the bundled example, of their usage errors and of their reference.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { playground } from "../playground/command.ts";
import { helpLines } from "../playground/commands.ts";
import { diff } from "../src/cli/commands/diff.ts";
import { explain } from "../src/cli/commands/explain.ts";
import { commands, referencePage } from "../src/cli/commands/index.ts";
import type { CommandWorld } from "../src/cli/commands/kube-proxy.ts";
import { render, renderSpec } from "../src/cli/commands/render.ts";
import { run } from "../src/cli/commands/run.ts";
import { offersOf } from "../src/cli/completion.ts";
import { dispatch } from "../src/cli/dispatch.ts";
import { readCommandLine, requestsHelp, splitFlags } from "../src/cli/flags.ts";
import { helpText } from "../src/cli/help.ts";
import { withUsageErrors } from "../src/cli/usage-error.ts";
import { HostError } from "../src/host/error.ts";
import { golden, outputOf, shop } from "./support/shop-commands.ts";

const root = join(import.meta.dirname, "..");
const scratch = mkdtempSync(join(tmpdir(), "turnout-commands-"));
afterAll(() => rmSync(scratch, { recursive: true }));

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
