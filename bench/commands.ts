// How long commands take with 10,000 Services: explain, render, diff and status, on files and on a running daemon.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stringify } from "yaml";
import { createNamespace, type Namespace, reasonToSkip } from "../test/kernel/netns.ts";
import { clusterOf, nodeName, type Size, sizeText } from "./lib/cluster.ts";
import { publish, type Row } from "./lib/measure.ts";
import { start } from "./lib/run.ts";

const rounds = Number(process.env.TURNOUT_COMMAND_ROUNDS ?? 7);
const turnout = join(process.cwd(), "bin", "turnout");
const sizes: readonly Size[] = [
  { services: 10_000, endpoints: 2 },
  { services: 10_000, endpoints: 10 },
];
const question = ["explain", "pod:10.0.0.5", "svc/ns-7/service-7:80"];
const folder = mkdtempSync(join(tmpdir(), "turnout-commands-"));
const rows: Row[] = [];

start(() => main().finally(() => rmSync(folder, { recursive: true, force: true })));

async function main(): Promise<void> {
  // Node.js would read them at each start: of a whole distribution's, longer than all else that it starts with.
  delete process.env.NODE_EXTRA_CA_CERTS;
  // How quick the machine is just now: its hours differ by a half.
  time("a program that does nothing", () => spawnSync(process.execPath, ["-e", ""]));
  for (const size of sizes) {
    const files = written(size);
    for (const [way, path] of Object.entries(files.ways)) measureFiles(`${sizeText(size)}, ${way}`, path);
    const against = [`--source=files:${files.ways.JSON}`, `--against=files:${files.other}`];
    measure(`${sizeText(size)}, JSON: diff`, ["diff", ...against, `--node=${nodeName}`], 3);
    const reason = reasonToSkip();
    if (reason === null) await measureDaemon(sizeText(size), files.ways.JSON);
    else console.log(`  without a daemon: ${reason}`);
  }
  publish(rows);
}

function measureFiles(what: string, path: string): void {
  const source = [`--source=files:${path}`, `--node=${nodeName}`];
  measure(`${what}: explain`, [...question, ...source]);
  measure(`${what}: render`, ["render", ...source]);
  measure(`${what}: render -o nftables`, ["render", "-o", "nftables", ...source]);
}

async function measureDaemon(what: string, path: string): Promise<void> {
  const netns = createNamespace("bench-commands");
  netns.ip(
    "link set lo up",
    "link add eth0 type veth peer name other",
    "link set eth0 up",
    "addr add 192.168.0.2/24 dev eth0",
  );
  const socket = join(folder, "status.sock");
  const daemon = startDaemon(netns, path, socket);
  const source = `--source=daemon:${socket}`;
  try {
    await untilInPlace(netns, socket);
    const commands = {
      status: ["status"],
      explain: question,
      "explain --live": [...question, "--live"],
      render: ["render"],
      "render -o nftables": ["render", "-o", "nftables"],
      "diff --live": ["diff", "--live"],
    };
    for (const [name, argv] of Object.entries(commands))
      measure(`${what}, daemon: ${name}`, [...argv, source], 0, netns);
  } finally {
    const ended = new Promise((resolve) => daemon.once("exit", resolve));
    daemon.kill();
    await ended;
    netns.remove();
  }
}

function startDaemon(netns: Namespace, path: string, socket: string): ChildProcess {
  const config = join(folder, "config.json");
  const header = { apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration" };
  const conntrack = { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" };
  writeFileSync(
    config,
    JSON.stringify({
      ...header,
      mode: "nftables",
      hostnameOverride: nodeName,
      detectLocalMode: "NodeCIDR",
      conntrack,
    }),
  );
  const flags = [`--config=${config}`, `--source=files:${path}`, `--status-socket=${socket}`];
  return spawn("ip", ["netns", "exec", netns.name, turnout, "run", ...flags], { stdio: "ignore" });
}

async function untilInPlace(netns: Namespace, socket: string): Promise<void> {
  for (let tries = 0; tries < 60; tries++) {
    const { stdout } = run(["diff", "--live", `--source=daemon:${socket}`], netns);
    if (stdout.includes("holds what it should")) return;
    await sleep(1_000);
  }
  throw new Error("The daemon did not get everything in place within a minute");
}

function measure(what: string, argv: readonly string[], code = 0, netns?: Namespace): void {
  const command = () => {
    const { status, stderr } = run(argv, netns);
    if (status !== code) throw new Error(`${argv.join(" ")} ended with ${status}: ${stderr}`);
  };
  time(what, command, { limit: limitOf(what) });
}

/** Parsing takes most of the time, and is in proportion to the size of the file. */
function limitOf(what: string): number {
  const factor = what.includes("× 10") ? 2 : 1;
  if (what.includes("YAML")) return 2_500 * factor;
  return what.includes("JSON") ? 1_200 * factor : 1_000;
}

/** From the start of a command to its end, the best and the middle one. */
function time(what: string, command: () => void, limit: Pick<Row, "limit"> = {}): void {
  const times = Array.from({ length: rounds }, () => {
    const started = performance.now();
    command();
    return performance.now() - started;
  }).sort((a, b) => a - b);
  rows.push({ what: `${what}: best`, value: times[0]!, unit: "ms" });
  rows.push({ what: `${what}: median`, value: times[times.length >> 1]!, unit: "ms", ...limit });
}

function run(argv: readonly string[], netns?: Namespace) {
  const line = [...(netns === undefined ? [] : ["ip", "netns", "exec", netns.name]), turnout, ...argv];
  return spawnSync(line[0]!, line.slice(1), { encoding: "utf8", maxBuffer: 1e9 });
}

/** As kubectl prints a cluster, and another one that differs in one Service. */
function written(size: Size) {
  const items = clusterOf(size).map(({ metadata, ...rest }, i) => ({
    ...rest,
    metadata: {
      ...metadata,
      creationTimestamp: "2026-01-01T00:00:00Z",
      resourceVersion: String(1_000 + i),
      uid: `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`,
    },
  }));
  const list = (some: readonly object[]) => ({ apiVersion: "v1", items: some, kind: "List", metadata: {} });
  const put = (name: string, text: string) => {
    const path = join(folder, `${size.endpoints}-${name}`);
    writeFileSync(path, text);
    return path;
  };
  const middle = 1 + size.services;
  const { spec } = items[middle] as unknown as { readonly spec: object };
  const ports = [{ name: "http", protocol: "TCP", port: 81, targetPort: 8080 }];
  const other = items.with(middle, { ...items[middle]!, ...{ spec: { ...spec, ports } } });
  return {
    ways: {
      JSON: put("list.json", JSON.stringify(list(items), null, 4)),
      YAML: put("list.yaml", stringify(list(items), { indentSeq: false, aliasDuplicateObjects: false })),
    },
    other: put("other.json", JSON.stringify(list(other), null, 4)),
  };
}
