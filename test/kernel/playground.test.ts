// The playground as its users meet it: real packets agree with explain, changes reach them, kubectl can talk to it, and
// nothing is left behind.
import { execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parseManifests } from "../../src/playground/cluster/example.ts";
import { runLine } from "../../src/playground/commands.ts";
import { Playground } from "../../src/playground/playground.ts";
import { reasonToSkip } from "./netns.ts";

const root = join(import.meta.dirname, "..", "..");
const program = join(root, "dist", "turnout.cjs");
const reason = existsSync(program) ? reasonToSkip() : "not built; build with: npm run build";

const senders = [
  "web-1",
  "web-2",
  "node-a",
  "node-b",
  "outside",
  "outside:203.0.113.200",
  "outside:2001:db8:9::9",
];
const places = [
  "svc/shop/web:80",
  "svc/shop/cart:80",
  "svc/shop/stock:9090",
  "svc/shop/dns:53",
  "svc/shop/broken:80",
  "nodeport:30080",
  "nodeport:30081",
  "198.51.100.10:80",
  "[2001:db8::2]:30080",
  "[2001:db8::3]:30080",
  "[fd30::1:1]:80",
];

describe.each(["nftables", "iptables"])("playground in %s mode", (mode) => {
  let ground: Playground;
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));
  beforeAll(async () => {
    if (reason !== null) return;
    ground = await Playground.start({ mode, port: 0, program: [process.execPath, program] });
  });
  afterAll(() => ground?.close());

  it("gives real packets the fate that explain tells", async () => {
    const differences: string[] = [];
    for (const from of senders) {
      for (const to of places) {
        if (!canMeet(from, to)) continue;
        const told = await ground.explain(from, to);
        const { fate } = await ground.send(from, to);
        const met = fate.kind === "answered" ? fate.by.endpoint : fate.kind;
        if (!agrees(told, met)) differences.push(`${from} → ${to}: met ${met}, but explain says\n${told}`);
      }
    }
    expect(differences).toEqual([]);
  });

  it("follows scaling, readiness, draining and a flushed ruleset", async () => {
    await runLine(ground, "scale cart 4");
    expect(await answersOf("web-1", "svc/shop/cart:80")).toMatch(/^cart-\d$/);
    await runLine(ground, "scale stock 1");
    await runLine(ground, "unready stock-1");
    expect(await answersOf("web-1", "svc/shop/stock:9090")).toBe("refused");
    await runLine(ground, "ready stock-1");
    expect(await answersOf("web-1", "svc/shop/stock:9090")).toBe("stock-1");
    await runLine(ground, "drain node-b");
    const pods = ground.api.list("Pod").map(({ spec }) => (spec as { nodeName: string }).nodeName);
    expect(new Set(pods)).toEqual(new Set(["node-a"]));
    await runLine(ground, "uncordon node-b");
    await runLine(ground, "flush node-a");
    expect(await answersOf("outside", "nodeport:30080")).toMatch(/^web-\d$/);
  });

  it("says what is wrong with a command", async () => {
    expect(await runLine(ground, "fly")).toEqual([expect.stringContaining("send, explain, scale")]);
    expect(await runLine(ground, "scale web many")).toEqual([expect.stringContaining("scale web 5")]);
    expect(await runLine(ground, "kill nobody")).toEqual([expect.stringContaining("there are cart-1")]);
    expect(await runLine(ground, "send web-1")).toEqual([expect.stringContaining("svc/shop/cart:80")]);
  });

  async function answersOf(from: string, to: string): Promise<string> {
    const { fate } = await ground.send(from, to);
    return fate.kind === "answered" ? fate.by.pod : fate.kind;
  }
});

/** From outside no cluster IP can be reached, because the router does not know them; and families do not mix. */
function canMeet(from: string, to: string): boolean {
  // Another node's ports are that node's to explain.
  if (!from.startsWith("outside"))
    return !to.startsWith("[2001:") || (from.endsWith("1") && to.includes("::2]"));
  if (to.startsWith("svc/") || to.startsWith("[fd30")) return false;
  const isIPv6 = from.includes("2001:");
  return to.startsWith("nodeport:") || to.startsWith("[") === isIPv6;
}

/** Whether what a packet met is among what explain tells. */
function agrees(told: string, met: string): boolean {
  // A packet that is left alone finds nobody who listens.
  if (met === "refused") return /^outcome +(reject|pass)/m.test(told);
  if (met === "silence") return /^outcome +drop/m.test(told);
  if (met === "unreachable") return /^outcome +pass/m.test(told);
  return told.includes(`%  ${met} `);
}

const kubectlReason = reason ?? (existsSync("/usr/bin/kubectl") ? null : "kubectl is not installed");

describe("kubectl on the playground", () => {
  let ground: Playground;
  beforeEach(({ skip }) => skip(kubectlReason !== null, kubectlReason ?? ""));
  beforeAll(async () => {
    if (kubectlReason !== null) return;
    ground = await Playground.start({ mode: "nftables", port: 0, program: [process.execPath, program] });
  });
  afterAll(() => ground?.close());

  it("applies, gets, watches, edits, scales and deletes, and traffic follows", async () => {
    await kubectl(`apply -f -`, hello);
    expect(await kubectl("get service hello")).toMatch(
      /^hello +NodePort +172\.30\.\S+ +<none> +80:\d+\/TCP/m,
    );
    expect(await kubectl("get deployments")).toMatch(/^hello +\d\/2/m);
    expect(await kubectl("get pods -o wide")).toMatch(/^hello-1 +1\/1 +Running +0 +10\.0\.\d\.\d+ +node-/m);
    await ground.settled();
    expect((await ground.send("web-1", "svc/shop/hello:80")).fate.kind).toBe("answered");

    expect(await kubectl("scale deployment/hello --replicas=0")).toContain("scaled");
    await ground.settled();
    expect((await ground.send("web-1", "svc/shop/hello:80")).fate.kind).toBe("refused");

    await kubectl("scale deployment/hello --replicas=1");
    await kubectl(`patch service hello -p {"spec":{"externalTrafficPolicy":"Local"}}`);
    await kubectl("edit service hello", "", { EDITOR: "sed -i s/8080/8081/" });
    expect(
      await kubectl("get service hello -o jsonpath={.spec.ports[0].targetPort}{.spec.externalTrafficPolicy}"),
    ).toBe("8081Local");
    await ground.settled();
    expect((await ground.send("web-1", "svc/shop/hello:80")).fate.kind).toBe("refused");

    const watched = kubectl("get pods -w --request-timeout=3s");
    await kubectl("delete pod hello-1 --wait=false");
    expect(await watched).toMatch(/hello-1/);
    expect(await kubectl("delete -f -", hello)).toContain('service "hello" deleted');
    await ground.settled();
    expect((await ground.send("web-1", "svc/shop/web:80")).fate.kind).toBe("answered");
  });

  it("refuses a node port that another Service has", async () => {
    const taken = hello.replace("port: 80,", "port: 80, nodePort: 30080,");
    await expect(kubectl("apply -f -", taken)).rejects.toThrow(/already allocated by shop\/web/);
  });

  async function kubectl(line: string, input = "", env: NodeJS.ProcessEnv = {}): Promise<string> {
    const child = promisify(execFile)("kubectl", line.split(" "), {
      env: { ...process.env, ...env, KUBECONFIG: ground.kubeconfig, HOME: join(tmpdir(), "turnout-kubectl") },
    });
    child.child.stdin?.end(input);
    return (await child).stdout;
  }
});

const hello = `apiVersion: apps/v1
kind: Deployment
metadata: { name: hello, namespace: shop }
spec:
  replicas: 2
  selector: { matchLabels: { app: hello } }
  template:
    metadata: { labels: { app: hello } }
    spec: { containers: [{ name: echo, image: echo, ports: [{ containerPort: 8080 }] }] }
---
apiVersion: v1
kind: Service
metadata: { name: hello, namespace: shop }
spec: { type: NodePort, selector: { app: hello }, ports: [{ port: 80, targetPort: 8080 }] }
`;

describe("the end of a playground", () => {
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));

  it("leaves nothing behind, even when it is killed", async () => {
    for (const signal of ["SIGINT", "SIGKILL"] as const) {
      const child = spawn(process.execPath, [program, "playground", "--port=0"], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const ended = new Promise((resolve) => child.once("exit", resolve));
      await new Promise<void>((resolve) => {
        child.stdout.on("data", (text: Buffer) => text.includes("Ready after") && resolve());
      });
      expect(remains(child.pid!)).not.toEqual([]);
      child.kill(signal);
      await ended;
      for (let tries = 0; remains(child.pid!).length > 0 && tries < 100; tries++) await sleep(100);
      expect(remains(child.pid!)).toEqual([]);
    }
  });

  it("parses the objects it starts with", () => {
    expect(parseManifests("kind: A\n---\n---\nkind: B\n").map(({ kind }) => kind)).toEqual(["A", "B"]);
  });
});

/** Namespaces, files and processes that carry a playground's process id. */
function remains(pid: number): string[] {
  const namespaces = existsSync("/run/netns") ? readdirSync("/run/netns") : [];
  const state = `/run/turnout-playground/${pid}`;
  const processes = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(`${state}/`));
  return [
    ...namespaces.filter((name) => name.startsWith(`turnout-${pid}-`)),
    ...(existsSync(state) ? [state] : []),
    ...processes,
  ];
}
