// The kubectl plugin on a kubectl of files: what it prints, which exit code it has, and that no name is taken for code.
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const plugin = join(root, "bin", "kubectl-turnout");
const scripts = [plugin, join(root, "bin", "kubectl_complete-turnout")];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnout-kubectl-"));
  mkdirSync(join(folder, "bin"));
  symlinkSync(join(import.meta.dirname, "support", "fake-kubectl.sh"), join(folder, "bin", "kubectl"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Pod = {
  readonly node: string;
  readonly pod?: string;
  readonly phase?: string;
  readonly script?: string;
};

/** Pods of Turnout, each with the script that runs instead of turnout. */
function turnoutOn(pods: readonly Pod[], label = "app.kubernetes.io/name=turnout"): void {
  const lines = pods.map(({ node, pod = `turnout-${node}`, phase = "Running", script = "exit 0" }) => {
    const file = join(folder, `exec-${pod}`);
    if (!pod.includes("/")) {
      writeFileSync(file, `#!/bin/sh\n${script}\n`);
      chmodSync(file, 0o755);
    }
    return `${node}\tkube-system\t${pod}\tturnout\t${phase}\n`;
  });
  mkdirSync(join(folder, `pods-${label}`, ".."), { recursive: true });
  writeFileSync(join(folder, `pods-${label}`), lines.join(""));
}

function podAt(name: string, text: string): void {
  writeFileSync(join(folder, `pod-${name}`), text);
}

function environment(): NodeJS.ProcessEnv {
  return { PATH: `${join(folder, "bin")}:${process.env.PATH}`, FAKE: folder, TMPDIR: folder };
}

/** A time-out of one second begins when these files are there: a busy machine starts programs late. */
function secondsBeginAfter(...files: readonly string[]): void {
  const areThere = files.map((file) => `[ -e "$FAKE/${file}" ]`).join(" && ");
  const sleep = join(folder, "bin", "sleep");
  writeFileSync(
    sleep,
    `#!/bin/sh\n[ "$1" != 1 ] || until ${areThere}; do /bin/sleep 0.05; done\nexec /bin/sleep "$1"\n`,
  );
  chmodSync(sleep, 0o755);
}

function run(...argv: readonly string[]): { code: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync("dash", [plugin, ...argv], {
    encoding: "utf8",
    env: environment(),
    cwd: folder,
  });
  return { code: status, out: stdout, err: stderr };
}

/** The arguments of each call of kubectl. */
function calls(): string[][] {
  return readFileSync(join(folder, "calls"), "utf8")
    .split("\0END\0")
    .filter((each) => each !== "")
    .map((each) => each.split("\0"));
}

const row = (node: string, health = "ok", drift = "none") =>
  `printf '%s\\t' ${node} nftables '${health}' '5 s ago' '${drift}' '9 s'; echo v1.37.1`;

describe("the scripts", () => {
  it("are POSIX shell", () => {
    for (const script of scripts) {
      expect(readFileSync(script, "utf8")).toMatch(/^#!\/bin\/sh\n/);
      expect(spawnSync("dash", ["-n", script], { encoding: "utf8" })).toMatchObject({
        status: 0,
        stderr: "",
      });
    }
  });

  it("have no remark of shellcheck", ({ skip }) => {
    if (spawnSync("shellcheck", ["--version"]).status !== 0) return skip("shellcheck is not installed");
    const { stdout } = spawnSync("shellcheck", ["--shell=sh", ...scripts], { encoding: "utf8" });
    expect(stdout).toBe("");
  });

  it("have the version of this repository, and no eval", () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
    expect(run("version")).toEqual({ code: 0, out: `kubectl-turnout ${version}\n`, err: "" });
    for (const script of scripts) expect(readFileSync(script, "utf8")).not.toMatch(/\beval\b/);
  });
});

describe("status", () => {
  it("prints a row for each node, in order, and exits with 0 when all are well", () => {
    turnoutOn([
      { node: "node-b", script: row("node-b", "ok", "3 repaired, last 2 s ago") },
      { node: "node-a", script: row("node-a") },
    ]);
    expect(run("status")).toEqual({
      code: 0,
      err: "",
      out: [
        "NODE     MODE       HEALTH   LAST SYNC   DRIFT                      WATCHES   VERSION",
        "node-a   nftables   ok       5 s ago     none                       9 s       v1.37.1",
        "node-b   nftables   ok       5 s ago     3 repaired, last 2 s ago   9 s       v1.37.1",
        "",
      ].join("\n"),
    });
  });

  it("a node that does not answer is a row with the reason, and the exit code is 3", () => {
    const ending = (node: string, script: string) => ({
      node,
      script: `${script}; : >"$FAKE/ended-${node}"`,
    });
    turnoutOn([
      ending("a-sick", row("a-sick", "unhealthy: late: queued")),
      { node: "b-pending", phase: "Pending" },
      { node: "c-slow", script: "exec sleep 60" },
      ending("d-mute", "trap 'exit 1' EXIT; echo 'turnout status: no daemon is running' >&2"),
      ending("e-odd", "echo hello"),
      ending("f-well", row("f-well")),
    ]);
    const other = { ...ending("g-other", "trap 'exit 126' EXIT"), pod: "kube-proxy-g" };
    turnoutOn([other], "k8s-app=kube-proxy");
    secondsBeginAfter("ended-a-sick", "ended-d-mute", "ended-e-odd", "ended-f-well", "ended-g-other");
    const { code, out } = run("status", "--timeout=1");
    const rows = out.trimEnd().split("\n").slice(1);
    expect(rows.map((each) => each.split(/ {3,}/)).map((each) => [each[0], each[2]])).toEqual([
      ["a-sick", "unhealthy: late: queued"],
      ["b-pending", "pod turnout-b-pending is Pending"],
      ["c-slow", "no answer within 1 s"],
      ["d-mute", "no answer: no daemon is running"],
      ["e-odd", "no answer: not understood"],
      ["f-well", "ok"],
      ["g-other", "runs kube-proxy, not Turnout"],
    ]);
    expect(code).toBe(3);
  });

  it("a Linux node without a pod of Turnout is a row too, in every table", () => {
    turnoutOn([{ node: "node-b", script: `case $1 in status) ${row("node-b")} ;; doctor) echo {} ;; esac` }]);
    writeFileSync(join(folder, "nodes"), "node-c\nnode-b\nnode-a\n$(touch pwned)\n");
    expect(run("status")).toEqual({
      code: 3,
      err: "",
      out: [
        "NODE     MODE       HEALTH           LAST SYNC   DRIFT   WATCHES   VERSION",
        "node-a   -          no Turnout pod   -           -       -         -",
        "node-b   nftables   ok               5 s ago     none    9 s       v1.37.1",
        "node-c   -          no Turnout pod   -           -       -         -",
        "",
      ].join("\n"),
    });
    expect(run("diff").out).toBe(
      "NODE     DIFFERENCES\nnode-a   no Turnout pod\nnode-b   none\nnode-c   no Turnout pod\n",
    );
    expect(JSON.parse(run("doctor", "-o", "json").out).slice(0, 2)).toEqual([
      { node: "node-a", exitCode: 125, error: "no Turnout pod" },
      { node: "node-b", exitCode: 0, answer: {} },
    ]);
    expect(run("status", "--node=node-b").code).toBe(0);
    expect(run("status", "--node=node-a")).toMatchObject({
      code: 1,
      err: 'kubectl turnout: no pod of Turnout runs on node "node-a"; nodes: node-b\n',
    });
    expect(existsSync(join(folder, "pwned"))).toBe(false);
  });

  it("prefers Turnout's own pod on a node, and a running one", () => {
    turnoutOn([
      { node: "node-a", pod: "old", phase: "Terminating" },
      { node: "node-a", pod: "new", script: row("node-a") },
    ]);
    turnoutOn([{ node: "node-a", pod: "kube-proxy-a", script: "exit 126" }], "k8s-app=kube-proxy");
    expect(run("status")).toMatchObject({ code: 0, out: expect.stringContaining("v1.37.1") });
    expect(calls().filter((each) => each.includes("exec"))).toHaveLength(1);
  });

  it("queries eight nodes at a time", async () => {
    const log = join(folder, "log");
    const script = (node: string) =>
      `echo + >>"${log}"; until [ "$(grep -c + "${log}")" -ge 8 ]; do sleep 0.1; done; sleep 0.3; echo - >>"${log}"; ${row(node)}`;
    const nodes = Array.from({ length: 20 }, (_, i) => `node-${String(i).padStart(2, "0")}`);
    turnoutOn(nodes.map((node) => ({ node, script: script(node) })));
    expect(run("status", "--timeout=60").out.trimEnd().split("\n")).toHaveLength(21);
    let [now, most] = [0, 0];
    for (const line of readFileSync(log, "utf8").trimEnd().split("\n")) {
      now += line === "+" ? 1 : -1;
      most = Math.max(most, now);
    }
    expect([now, most]).toEqual([0, 8]);
  });

  it("prints JSON, with an error for a node that does not answer", () => {
    turnoutOn([
      { node: "a", script: 'printf \'{\\n  "health": {\\n    "healthy": true\\n  }\\n}\\n\'' },
      { node: "b", script: "echo 'a \"quoted\" \\\\ reason' >&2; exit 1" },
    ]);
    const { code, out } = run("status", "-o", "json");
    expect(JSON.parse(out)).toEqual([
      { node: "a", exitCode: 0, answer: { health: { healthy: true } } },
      { node: "b", exitCode: 1, error: 'no answer: a "quoted" \\ reason' },
    ]);
    expect(code).toBe(3);
    expect(calls().at(-1)).toContain("json");
  });

  it("exits with 3 for an unhealthy node in JSON too", () => {
    turnoutOn([{ node: "a", script: 'printf \'{\\n  "health": {\\n    "healthy": false\\n  }\\n}\\n\'' }]);
    expect(run("status", "-ojson").code).toBe(3);
  });

  it("leaves nothing behind", () => {
    turnoutOn([{ node: "a", script: row("a") }]);
    run("status");
    expect(readdirSync(folder).filter((name) => name.startsWith("tmp."))).toEqual([]);
  });

  it("ends its processes when it is interrupted", async () => {
    turnoutOn([{ node: "a", script: 'echo $$ >"$FAKE/new"; mv "$FAKE/new" "$FAKE/pid"; exec sleep 60' }]);
    secondsBeginAfter("interrupted");
    const child = spawn("dash", [plugin, "status", "--timeout=1"], { env: environment() });
    await expect.poll(() => existsSync(join(folder, "pid"))).toBe(true);
    child.kill("SIGTERM");
    writeFileSync(join(folder, "interrupted"), "");
    const pid = () => readFileSync(join(folder, "pid"), "utf8").trim();
    await expect.poll(() => existsSync(`/proc/${pid()}`)).toBe(false);
    await expect.poll(() => readdirSync(folder).filter((name) => name.startsWith("tmp."))).toEqual([]);
  });
});

describe("diff and doctor", () => {
  it("print a summary first, then what was found", () => {
    turnoutOn([
      { node: "a", script: "exit 0" },
      { node: "b", script: "printf 'ipv4: one\\nipv6: two\\n'; exit 3" },
    ]);
    expect(run("diff")).toEqual({
      code: 3,
      err: "",
      out: "NODE   DIFFERENCES\na      none\nb      2\n\nb:\n  ipv4: one\n  ipv6: two\n",
    });
    expect(calls().at(-1)!.slice(-3)).toEqual(["turnout", "diff", "--live"]);
  });

  it("doctor counts findings, and exits with 4 when a check failed", () => {
    turnoutOn([
      { node: "a", script: "echo 'ok        kernel'; exit 0" },
      { node: "b", script: "printf 'warning   drift\\nfailed    kernel  old\\n'; exit 4" },
    ]);
    expect(run("doctor")).toEqual({
      code: 4,
      err: "",
      out: "NODE   FAILED   WARNINGS\na      0        0\nb      1        1\n\nb:\n  warning   drift\n  failed    kernel  old\n",
    });
    expect(run("doctor", "--node=a").code).toBe(0);
  });
});

describe("explain", () => {
  const echo = `printf 'packet    x\\noutcome   forward to one of 2\\n'; printf '%s\\n' "$@" >"$FAKE/args-$0"`;
  const argsOn = (node: string) => {
    const name = `args-${join(folder, `exec-turnout-${node}`)}`;
    return readFileSync(join(folder, name), "utf8").trimEnd().split("\n");
  };
  beforeEach(() => {
    mkdirSync(join(folder, "args-", folder), { recursive: true });
    const write = echo.replace("args-$0", "args-/$0");
    turnoutOn(["node-a", "node-b"].map((node) => ({ node, script: write })));
    podAt("shop-web-1", "node-b\tpod:10.0.2.5,fd00:2::5\n");
    podAt("default-web-1", "node-a\tpod:10.0.1.9\n");
    podAt("shop-host", "node-a\tnode\n");
    podAt("shop-new", "<no value>\tpod:\n");
    podAt("shop-early", "node-a\tpod:\n");
  });

  const live = (namespace: string) => [
    "explain",
    "--live",
    `--namespace=${namespace}`,
    "--output=text",
    "--",
  ];

  it.each<[string[], string, string[]]>([
    [["web-1", "svc/web", "-n", "shop"], "node-b", [...live("shop"), "pod:10.0.2.5,fd00:2::5", "svc/web"]],
    [["web-1", "web"], "node-a", [...live("default"), "pod:10.0.1.9", "web"]],
    [["pod/web-1", "web", "-nshop"], "node-b", [...live("shop"), "pod:10.0.2.5,fd00:2::5", "web"]],
    [["shop/web-1", "web"], "node-b", [...live("default"), "pod:10.0.2.5,fd00:2::5", "web"]],
    [["pod:shop/web-1", "web"], "node-b", [...live("default"), "pod:10.0.2.5,fd00:2::5", "web"]],
    [["host", "web", "--namespace=shop"], "node-a", [...live("shop"), "node", "web"]],
    [["node/node-b", "web"], "node-b", [...live("default"), "node", "web"]],
    [["node-b", "web"], "node-b", [...live("default"), "node", "web"]],
    [["node", "web", "--node", "node-a"], "node-a", [...live("default"), "node", "web"]],
    [
      ["outside", "nodeport:30080", "--node=node-a"],
      "node-a",
      [...live("default"), "outside", "nodeport:30080"],
    ],
    [["203.0.113.9", "web", "--node=node-a"], "node-a", [...live("default"), "outside:203.0.113.9", "web"]],
    [["pod:10.0.1.9", "web", "--node=node-a"], "node-a", [...live("default"), "pod:10.0.1.9", "web"]],
  ])("%j queries %s", (argv, node, question) => {
    const { code, out, err } = run("explain", ...argv);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toBe("packet    x\noutcome   forward to one of 2\n");
    expect(argsOn(node)).toEqual(question);
  });

  it("queries every node about a client outside", () => {
    expect(run("explain", "outside", "web")).toEqual({
      code: 0,
      err: "",
      out: [
        "NODE     OUTCOME",
        "node-a   forward to one of 2",
        "node-b   forward to one of 2",
        "",
        "node-a:",
        "  packet    x",
        "  outcome   forward to one of 2",
        "",
        "node-b:",
        "  packet    x",
        "  outcome   forward to one of 2",
        "",
      ].join("\n"),
    });
  });

  it.each<[string[], string]>([
    [["web-1"], "FROM and TO are required"],
    [["nobody", "web"], 'pods "nobody" not found'],
    [["pod/node-a", "web"], 'pods "node-a" not found'],
    [["node/node-z", "web"], 'no pod of Turnout runs on node "node-z"; nodes: node-a, node-b'],
    [["node", "web"], "name the node: node/NAME"],
    [["pod:10.0.1.9", "web"], "set --node to its node"],
    [["new", "web", "-n", "shop"], "pod shop/new is not scheduled yet"],
    [["early", "web", "-n", "shop"], "pod shop/early has no address yet"],
    [["web-1", "web", "--bogus"], 'unknown flag "--bogus"'],
  ])("reports the mistake in %j", (argv, message) => {
    const { code, out, err } = run("explain", ...argv);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(/^kubectl turnout: .*\n$/);
    expect(err).toContain(message);
  });
});

describe("security/16: names and answers are data", () => {
  const evil = [
    "$(touch pwned)",
    "`touch pwned`",
    "a;touch pwned",
    "a|touch pwned",
    "a'$(touch pwned)'",
    'a"$(touch pwned)"',
    "--kubeconfig=/tmp/x",
    "-it",
    "../../etc",
    "a\u001b[2Jb",
    "A_B",
    "a b",
  ];

  it.each(evil)("of the user: %j", (name) => {
    turnoutOn([{ node: "node-a", script: `printf '%s\\n' "$@" >"$FAKE/args"` }]);
    podAt("default-web-1", "node-a\tpod:10.0.1.9\n");
    const from = run("explain", "--", name, "web");
    expect(from.code).toBe(1);
    expect(from.err).toMatch(/^kubectl turnout: (invalid name|unknown flag) "[ -~]*"/);
    for (const flag of ["--node", "--turnout-namespace", "-n"])
      expect(run("status", `${flag}${flag === "-n" ? "" : "="}${name}`).code).toBe(1);
    expect(existsSync(join(folder, "pwned"))).toBe(false);
  });

  it.each(evil.filter((name) => !name.startsWith("-")))("of a Service: %j is one argument", (name) => {
    turnoutOn([{ node: "node-a", script: `printf '%s\\n' "$@" >"$FAKE/args"` }]);
    podAt("default-web-1", "node-a\tpod:10.0.1.9\n");
    expect(run("explain", "web-1", name).code).toBe(0);
    expect(readFileSync(join(folder, "args"), "utf8").trimEnd().split("\n").at(-1)).toBe(name);
    expect(existsSync(join(folder, "pwned"))).toBe(false);
  });

  it("of the cluster: pods and nodes with such names are not queried", () => {
    turnoutOn([
      ...evil.map((name) => ({ node: name, pod: "turnout-x" })),
      ...evil.filter((name) => !name.includes("/")).map((name) => ({ node: "node-z", pod: name })),
      { node: "node-a", script: row("node-a") },
    ]);
    const { code, out } = run("status");
    expect(code).toBe(0);
    expect(out.trimEnd().split("\n")).toHaveLength(2);
    expect(calls().filter((each) => each.includes("exec"))).toHaveLength(1);
    expect(existsSync(join(folder, "pwned"))).toBe(false);
  });

  it("of a node: control characters are replaced, and rows cannot be forged", () => {
    const controls = String.raw`\033[2J\302\233\342\200\256`;
    turnoutOn([
      {
        node: "node-a",
        script: `printf 'node-b\\tx\\tok ${controls}\\ta\\tb\\tc\\td\\nnode-c\\tx\\tok\\ta\\tb\\tc\\td\\n'`,
      },
    ]);
    const { out } = run("status");
    expect(out.trimEnd().split("\n").slice(1)).toEqual([
      "node-a   x      ok ?[2J??   a           b       c         d",
    ]);
    turnoutOn([{ node: "node-a", script: `printf '${controls}x\\n' >&2; exit 1` }]);
    expect(run("status").out).toContain("no answer: ?[2J??x ");
  });

  it("of a pod's address: nothing but addresses is passed on", () => {
    turnoutOn([{ node: "node-a" }]);
    podAt("default-web-1", "node-a\tpod:10.0.1.9 --source=files:/etc\n");
    expect(run("explain", "web-1", "web")).toMatchObject({
      code: 1,
      err: expect.stringContaining("invalid address"),
    });
  });
});

describe("kubectl", () => {
  it("receives the flags of the connection in each call, and words after --", () => {
    turnoutOn([{ node: "node-a", script: row("node-a") }]);
    run("status", "--context", "blue; x", "--kubeconfig=/a b", "--as=me");
    expect(calls().length).toBeGreaterThan(2);
    for (const call of calls())
      expect(call.slice(0, 3).sort()).toEqual(["--as=me", "--context=blue; x", "--kubeconfig=/a b"]);
    expect(calls().at(-1)!.slice(3)).toEqual([
      "exec",
      "--namespace=kube-system",
      "turnout-node-a",
      "--container=turnout",
      "--",
      "turnout",
      "status",
      "-o",
      "row",
    ]);
  });

  it("takes the namespace and the labels of Turnout's pods from flags or variables", () => {
    turnoutOn([{ node: "node-a", script: row("node-a") }], "component=kube-proxy");
    expect(run("status", "--turnout-selector=component=kube-proxy", "--turnout-namespace=net").code).toBe(0);
    expect(calls()[0]).toContain("--namespace=net");
    expect(calls()[0]).toContain("--selector=component=kube-proxy");
  });

  it("prints what to do when there is no pod of Turnout", () => {
    expect(run("status")).toEqual({
      code: 1,
      out: "",
      err: "kubectl turnout: no pod of Turnout in namespace kube-system; set --turnout-namespace or --turnout-selector\n",
    });
  });

  it("reports an API server that does not answer in kubectl's message, without the lines of its log", () => {
    const message =
      "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?";
    const log = 'E1118 15:39:12.475969   18549 memcache.go:265] "Unhandled Error" err="connection refused"';
    writeFileSync(join(folder, "refused"), `${log}\n${log}\n${message}\n`);
    expect(run("status")).toEqual({
      code: 1,
      out: "",
      err: `kubectl turnout: cannot list pods: ${message}\n`,
    });
  });

  it("logs prints the logs of each node", () => {
    turnoutOn([{ node: "node-a" }, { node: "node-b" }]);
    expect(run("logs", "--tail=1")).toEqual({
      code: 0,
      err: "",
      out: "[pod/turnout-node-a/turnout] a line\n[pod/turnout-node-b/turnout] a line\n",
    });
    expect(run("logs", "--node=node-b").out).toBe("[pod/turnout-node-b/turnout] a line\n");
    expect(run("logs", "--bogus").code).toBe(1);
  });

  describe("ui", () => {
    const token = "abcdefghijklmnopqrstuvwxyz_-0123";
    const script = `echo "$@" >"$FAKE/asked"; echo "http://127.0.0.1:34567/#token=${token}"; cat >/dev/null; echo >"$FAKE/ended"`;

    it("runs the page in the pod, forwards its port, prints the URL, and ends both", async () => {
      turnoutOn([{ node: "node-a", script }, { node: "node-b" }]);
      const plugged = spawn("dash", [plugin, "ui", "--node=node-a"], { env: environment(), cwd: folder });
      let printed = "";
      plugged.stdout.setEncoding("utf8").on("data", (text: string) => {
        printed += text;
      });
      await expect.poll(() => printed).toBe(`http://127.0.0.1:34567/#token=${token}\n`);
      expect(readFileSync(join(folder, "asked"), "utf8")).toBe("page --until-stdin-ends\n");
      expect(calls().map(([verb]) => verb)).toEqual(["get", "get", "exec", "port-forward"]);
      const ended = new Promise((resolve) => plugged.once("exit", resolve));
      plugged.kill("SIGTERM");
      expect(await ended).toBe(130);
      await expect.poll(() => existsSync(join(folder, "ended"))).toBe(true);
      expect(readdirSync(folder).filter((name) => name.startsWith("tmp."))).toEqual([]);
    });

    it.each([
      [
        "several nodes",
        [{ node: "node-a" }, { node: "node-b" }],
        [],
        "name the node with --node; nodes: node-a, node-b",
      ],
      [
        "a page that cannot start",
        [{ node: "node-a", script: "echo 'turnout page: no daemon' >&2; exit 1" }],
        [],
        "turnout page: no daemon",
      ],
      [
        "another text than a URL",
        [{ node: "node-a", script: "echo 'http://evil.example/#token=x'; cat" }],
        [],
        "the pod printed no URL",
      ],
      [
        "a pod that does not answer",
        [{ node: "node-a", script: "exec sleep 60" }],
        ["--timeout=1"],
        "no answer within 1 s",
      ],
      ["a pod that is not running", [{ node: "node-a", phase: "Pending" }], [], "is Pending"],
    ] as const)("reports %s", (_, pods, flags, message) => {
      turnoutOn(pods);
      const { code, out, err } = run("ui", ...flags);
      expect([code, out]).toEqual([1, ""]);
      expect(err).toContain(message);
      expect(err.trimEnd().split("\n")).toHaveLength(1);
    });
  });

  it.each<[string[], string]>([
    [["ui", "now"], 'unexpected argument "now"'],
    [["stauts"], 'unknown command "stauts"'],
    [["status", "now"], 'unexpected argument "now"'],
    [["status", "--bogus"], 'unknown flag "--bogus"'],
    [["status", "-o", "yaml"], '-o must be text or json, not "yaml"'],
    [["status", "--timeout=soon"], "--timeout must be a number of seconds"],
    [["status", "--node"], "--node requires a value"],
  ])("reports the mistake in %j in one line", (argv, message) => {
    const { code, out, err } = run(...argv);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(/^kubectl turnout: .*\n$/);
    expect(err).toContain(message);
  });

  it("prints help", () => {
    const { code, out } = run();
    expect([code, out]).toEqual([0, expect.stringMatching(/^kubectl turnout: .*\n\nUsage:\n/)]);
    expect(run("status", "--help").out).toBe(out);
  });
});
