// `npm run test:node`: a real cluster on one machine, Turnout installed as a user would, upstream's tests, and disturbances.
import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, mkdirSync, rmSync } from "node:fs";
import { homedir, loadavg, release } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { findAssets } from "../assets.ts";
import { disturb, type Failures } from "./chaos.ts";
import { type NodeCluster, startCluster } from "./cluster.ts";
import { dnsObjects } from "./dns.ts";
import { type E2ePrograms, runE2e } from "./e2e.ts";
import { buildImages } from "./images.ts";
import { type Installed, type InstallOptions, install, uninstall, type Way } from "./install.ts";
import type { ProxyMode } from "./kubeadm.ts";
import { checkPlugin } from "./plugin.ts";
import { failed, printReport, type Report, type Run, regressions, type Took, unrepaired } from "./report.ts";
import { merged, readReport, writeReport } from "./report-file.ts";
import { checkTools } from "./tools.ts";

const usage = `usage: npm run test:node [-- FLAG…]

Starts three nodes (containerd, kubelet) and a control plane in network namespaces, installs Turnout with kustomize,
with Helm and as an image swap, runs upstream's end-to-end tests of Services, and breaks things under load.

  --only=PARTS      tools, e2e, chaos (all)
  --proxies=LIST    kube-proxy, turnout (both)
  --modes=LIST      nftables, iptables, userspace (all)
  --focus=REGEXP    names of upstream's specs, or of disturbances, to run
  --processes=N     specs that run at the same time (4)
  --output=DIR      where results go (dist/node)
  --merge           keep the results of other parts in report.json there
  --keep            leave the cluster running until Ctrl-C`;

const root = join(import.meta.dirname, "..", "..");
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "turnout");

const { values } = parseArgs({
  options: {
    help: { type: "boolean", short: "h" },
    only: { type: "string", default: "tools,e2e,chaos" },
    proxies: { type: "string", default: "kube-proxy,turnout" },
    modes: { type: "string", default: "nftables,iptables,userspace" },
    focus: { type: "string" },
    processes: { type: "string", default: "4" },
    output: { type: "string", default: join(root, "dist", "node") },
    merge: { type: "boolean", default: false },
    keep: { type: "boolean", default: false },
  },
});

const parts = new Set(values.only.split(","));
const proxies = new Set(values.proxies.split(","));
const modes = values.modes.split(",") as ProxyMode[];
const started = Date.now();

if (values.help) print(usage);
else process.exitCode = await main();

async function main(): Promise<number> {
  const assets = findAssets(
    ...([
      "etcd",
      "kube-apiserver",
      "kube-controller-manager",
      "kube-scheduler",
      "kubelet",
      "kubectl",
    ] as const),
    ...(["kube-proxy", "agnhost", "coredns", "regression-issue-74839", "e2e.test", "ginkgo"] as const),
  );
  const reason = assets.found ? missingTools() : assets.reason;
  if (reason !== null || !assets.found) {
    print(`skipped: everything × ${reason}`);
    return 1;
  }
  const helm = findAssets("helm");
  const images = [
    await buildImages(join(cache, "images"), assets.paths),
    join(root, "dist", "image", `turnout-0.1.0-${process.arch === "arm64" ? "arm64" : "amd64"}.tar`),
  ];
  mkdirSync(values.output, { recursive: true });
  logStep("starting the cluster");
  const cluster = await startCluster(assets.paths, images);
  const stop = closer(cluster);
  try {
    cluster.kubectl(["apply", "-f", "-"], list(dnsObjects));
    return await runAll(cluster, assets.paths, helm.found ? helm.paths.helm : null);
  } finally {
    if (values.keep) await kept(cluster);
    await stop();
  }
}

type Programs = E2ePrograms & Readonly<Record<"kubectl" | "kube-proxy" | "etcd", string>>;

async function runAll(cluster: NodeCluster, programs: Programs, helm: string | null): Promise<number> {
  const old = values.merge ? readReport(values.output) : { versions: {}, runs: [], disturbed: [] };
  let report = merged(old, { versions: versionsOf(programs), runs: [], disturbed: [] });
  const add = (made: Partial<Report>): void => {
    report = merged(report, { versions: {}, runs: [], disturbed: [], ...made });
    writeReport(values.output, report);
  };
  const problems: string[] = [];
  for (const { label, way, mode, baseline } of plan(helm)) {
    const options: InstallOptions = { cluster, mode, folder: values.output, helm };
    logStep(`installing ${label}`);
    const installed = install(way, options);
    cluster.kubectl(["-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=5m"]);
    if (parts.has("tools") && way !== "kube-proxy")
      for (const problem of problemsOf(() => tools(cluster, installed, programs.kubectl))) {
        logStep(`${label}: ${problem}`);
        problems.push(`${label}: ${problem}`);
      }
    if (parts.has("e2e") && way !== "image swap") {
      const [results, took] = await timed(() => e2e(cluster, programs, label));
      add({ runs: [{ label, baseline, took, results }] });
    }
    if (parts.has("chaos") && way !== "image swap" && mode !== "userspace") {
      const [failures, took] = await timed(() => chaos(installed, options, label));
      add({ disturbed: [{ label, took, failures }] });
    }
    uninstall(installed, options);
  }
  problems.push(...regressions(report.runs), ...unrepaired(report.disturbed));
  print(printReport(report));
  for (const problem of problems) print(`failed: ${problem}`);
  return problems.length === 0 ? 0 : 1;
}

/** A check that fails in an unexpected way must not cost the results of an hour. */
function problemsOf(check: () => readonly string[]): readonly string[] {
  try {
    return check();
  } catch (error) {
    return [(error as Error).message];
  }
}

async function timed<T>(work: () => Promise<T>): Promise<[T, Took]> {
  const start = Date.now();
  const made = await work();
  const minutes = (Date.now() - start) / 60_000;
  return [made, { date: new Date().toISOString().slice(0, 10), minutes, load: loadavg()[0]! }];
}

function versionsOf(programs: Programs): Report["versions"] {
  const version = (command: string, ...args: readonly string[]): string =>
    /\bv?\d+\.\d+[^\s,]*/.exec(execFileSync(command, args, { encoding: "utf8" }))?.[0] ?? "unknown";
  return {
    "kube-proxy": version(programs["kube-proxy"], "--version"),
    Turnout: version(join(root, "bin", "turnout"), "--version"),
    etcd: version(programs.etcd, "--version"),
    containerd: version("containerd", "--version"),
    runc: version("runc", "--version"),
    Linux: release(),
  };
}

type Step = {
  readonly label: string;
  readonly way: Way;
  readonly mode: ProxyMode;
  readonly baseline: string | null;
};

/** Turnout is installed in each way, and each mode that kube-proxy has too is compared with kube-proxy. */
function plan(helm: string | null): readonly Step[] {
  const ways: Readonly<Record<ProxyMode, Way>> = {
    nftables: "kustomize",
    iptables: "helm",
    userspace: "kustomize",
  };
  const steps = modes.flatMap((mode): Step[] => {
    const baseline = mode === "userspace" ? null : `kube-proxy, ${mode}`;
    const way = ways[mode] === "helm" && helm === null ? "kustomize" : ways[mode];
    return [
      ...(baseline === null ? [] : [{ label: baseline, way: "kube-proxy" as const, mode, baseline: null }]),
      { label: `Turnout, ${mode}`, way, mode, baseline },
    ];
  });
  const swap: Step = { label: "Turnout, image swap", way: "image swap", mode: "nftables", baseline: null };
  if (helm === null) print("skipped: 1 × Helm: no helm; provide with: npm run assets -- helm");
  const all = modes.includes(swap.mode) && parts.has("tools") ? [...steps, swap] : steps;
  return all.filter(({ way }) => proxies.has(way === "kube-proxy" ? "kube-proxy" : "turnout"));
}

/** What the plugin printed goes to a file, for the docs. */
function tools(cluster: NodeCluster, installed: Installed, kubectl: string): string[] {
  const file = join(values.output, `kubectl-${installed.way.replace(" ", "-")}-${installed.mode}.txt`);
  rmSync(file, { force: true });
  return [
    ...checkTools(cluster, installed),
    ...checkPlugin(cluster, kubectl, installed.mode, (text) => appendFileSync(file, text)),
  ];
}

async function e2e(cluster: NodeCluster, programs: E2ePrograms, label: string): Promise<Run["results"]> {
  logStep(`${label}: upstream's tests`);
  const results = await runE2e({
    cluster,
    programs,
    folder: join(values.output, "e2e"),
    label: label.replace(/\W+/g, "-").toLowerCase(),
    ...(values.focus !== undefined && { focus: values.focus }),
    processes: Number(values.processes),
    onLine: (line) => {
      if (/^(• \[FAILED\]|Ran \d+|Will run)/.test(line)) logStep(`${label}: ${line}`);
    },
  });
  const failed = [...results].filter(([, { outcome }]) => outcome === "failed");
  for (const [spec, { message }] of failed) logStep(`${label}: failed: ${spec}: ${message.split("\n")[0]}`);
  return results;
}

function chaos(installed: Installed, options: InstallOptions, label: string): Promise<readonly Failures[]> {
  return disturb(
    installed,
    options,
    new RegExp(values.focus ?? ""),
    ({ disturbance, pod, outside, problem }) => {
      if (problem !== undefined) logStep(`${label}: ${disturbance}: not completed: ${problem}`);
      const reasons = JSON.stringify([pod.reasons, outside.reasons]);
      logStep(
        `${label}: ${disturbance}: failed: ${failed(pod)} from a pod, ${failed(outside)} from outside ${reasons}`,
      );
    },
  );
}

function missingTools(): string | null {
  if (process.getuid?.() !== 0) return "needs root on Linux";
  for (const tool of ["containerd", "ctr", "runc", "mmdebstrap", "nsenter", "unshare", "openssl", "busybox"])
    if (spawnSync("sh", ["-c", 'command -v "$1"', "sh", tool]).status !== 0)
      return `${tool} is not installed`;
  return null;
}

/** Closes the cluster once, also when the program is interrupted. */
function closer(cluster: NodeCluster): () => Promise<void> {
  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => (closing ??= cluster.close());
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void close().finally(() => process.exit(130)));
  return close;
}

async function kept(cluster: NodeCluster): Promise<void> {
  logStep(
    `kept; use: nsenter --net=${cluster.lan.plane.path} -- kubectl --kubeconfig=${cluster.plane.admin} get nodes`,
  );
  await new Promise(() => setInterval(() => undefined, 1000));
}

function list(items: readonly object[]): string {
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function logStep(text: string): void {
  print(`node: ${Math.round((Date.now() - started) / 1000)} s: ${text}`);
}
