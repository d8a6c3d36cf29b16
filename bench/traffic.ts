// What --traffic costs: new connections and packets per second, CPU and memory of the daemon, and memory of the kernel, with off, services and endpoints.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { trafficSettings } from "../src/config/resolve/settings.ts";
import { queryDaemon } from "../src/observe/status/client.ts";
import { createNamespace, type Namespace } from "../test/kernel/netns.ts";
import { median, publish, type Row } from "./lib/measure.ts";
import { startAsRoot } from "./lib/run.ts";
import { cpuSeconds, residentMiB } from "./lib/usage.ts";

const services = Number(process.env.TURNOUT_SERVICES ?? 5000);
const endpoints = 4;
const rounds = 3;
const seconds = 4;

type Figures = { conns: number[]; packets: number[]; cpu: number[]; rss: number; kernel: number };

startAsRoot(async () => {
  const [node, pod] = [createNamespace("bench-traffic"), createNamespace("bench-pod")];
  const folder = mkdtempSync(join(tmpdir(), "turnout-bench-"));
  const server = connectServer(node, pod);
  const rows: Row[] = [];
  try {
    writeFileSync(join(folder, "cluster.json"), JSON.stringify(cluster()));
    // The first run warms caches, and is not printed.
    await measure("off", node, folder);
    for (const setting of trafficSettings)
      rows.push(...rowsOf(setting, await measure(setting, node, folder)));
  } finally {
    server.kill();
    for (const each of [node, pod]) each.remove();
    rmSync(folder, { recursive: true });
  }
  publish(rows);
});

function rowsOf(setting: string, { conns, packets, cpu, rss, kernel }: Figures): Row[] {
  return [
    { what: `${setting}: new connections`, value: median(conns), unit: "/s" },
    { what: `${setting}: packets of one flow`, value: median(packets), unit: "/s" },
    { what: `${setting}: CPU of the daemon during connections`, value: median(cpu), unit: "ms/s" },
    { what: `${setting}: RSS of the daemon`, value: rss, unit: "MiB" },
    { what: `${setting}: kernel memory of the rules`, value: kernel, unit: "MiB" },
  ];
}

async function measure(setting: string, node: Namespace, folder: string): Promise<Figures> {
  node.run("nft", "flush", "ruleset");
  node.sysctl({ "net.netfilter.nf_conntrack_acct": 0 });
  // The kernel frees what was flushed a little later.
  await sleep(2000);
  const before = kernelMiB();
  const socket = join(folder, "status.sock");
  const daemon = spawn(
    "ip",
    [
      ...["netns", "exec", node.name, join(process.cwd(), "bin", "turnout"), "run"],
      ...[`--source=files:${folder}/cluster.json`, "--hostname-override=node-a", "--mode=nftables"],
      ...[`--status-socket=${socket}`, `--traffic=${setting}`],
    ],
    { stdio: "ignore" },
  );
  try {
    const pid = await ready(socket);
    const kernel = kernelMiB() - before;
    const figures: Figures = { conns: [], packets: [], cpu: [], rss: 0, kernel };
    for (let round = 0; round < rounds; round++) {
      const cpu = cpuSeconds(pid);
      figures.conns.push(rateOf(node, "tcp"));
      figures.cpu.push(((cpuSeconds(pid) - cpu) * 1000) / seconds);
      figures.packets.push(rateOf(node, "udp"));
      node.run("conntrack", "-F");
    }
    return { ...figures, rss: residentMiB(pid) };
  } finally {
    await stopped(daemon);
  }
}

async function ready(socket: string): Promise<number> {
  for (let attempt = 0; attempt < 600; attempt++) {
    const status = await queryDaemon(socket, "/").catch(() => null);
    if (status !== null && Object.keys(status.lastSuccess).length === 2) return status.pid;
    await sleep(100);
  }
  throw new Error("the daemon is not ready after a minute");
}

async function stopped(daemon: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => daemon.once("exit", resolve));
  daemon.kill("SIGTERM");
  await ended;
}

/** Objects of the kernel that are in use, and counters of all CPUs; pages that it keeps for later are not included. */
function kernelMiB(): number {
  const slabs = readFileSync("/proc/slabinfo", "utf8").matchAll(/^kmalloc-\S+ +(\d+) +\d+ +(\d+)/gm);
  const objects = [...slabs].reduce((sum, [, count, size]) => sum + Number(count) * Number(size), 0);
  const perCpu = Number(/^Percpu: +(\d+)/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1] ?? 0);
  return objects / 1024 / 1024 + perCpu / 1024;
}

const client = `
const net = require("node:net"), dgram = require("node:dgram");
const end = performance.now() + ${seconds * 1000};
let count = 0;
const tcp = () => { if (performance.now() > end) return; const c = net.connect(80, "172.31.0.1"); c.on("error", () => {}); c.on("connect", () => c.resetAndDestroy()); c.on("close", () => { count++; tcp(); }); };
const udp = () => { const s = dgram.createSocket("udp4"); s.connect(81, "172.31.0.1", function send() { if (performance.now() > end) { s.close(); return; } s.send("x", () => { count++; send(); }); }); };
for (let i = 0; i < (process.argv[1] === "tcp" ? 50 : 1); i++) (process.argv[1] === "tcp" ? tcp : udp)();
process.on("exit", () => console.log(count));
`;

function rateOf(node: Namespace, protocol: "tcp" | "udp"): number {
  return Number(node.run(process.execPath, "-e", client, protocol)) / seconds;
}

function connectServer(node: Namespace, pod: Namespace): ChildProcess {
  node.ip(
    "link set lo up",
    `link add pod0 type veth peer name eth0 netns ${pod.name}`,
    "addr add 10.9.0.1/24 dev pod0",
    "link set pod0 up",
    "route add default via 10.9.0.2",
  );
  pod.ip(
    "link set lo up",
    "addr add 10.9.0.2/24 dev eth0",
    "link set eth0 up",
    "route add default via 10.9.0.1",
  );
  const script = `require("node:net").createServer((c) => c.on("error", () => {})).listen(8080); const s = require("node:dgram").createSocket("udp4"); s.bind(8080); s.on("message", () => {});`;
  return pod.inside(() => spawn(process.execPath, ["-e", script], { stdio: "ignore" }));
}

/** Service 0 is used; the others only take up room. */
function cluster(): object {
  const items = [...Array(services).keys()].flatMap((i) => {
    const ip = `172.31.${i >> 8}.${(i & 255) + (i < 255 ? 1 : 0)}`;
    const address = (n: number) =>
      i === 0 ? "10.9.0.2" : `10.${10 + (i >> 12)}.${(i >> 4) & 255}.${(i & 15) * 8 + n + 1}`;
    const ports = ["TCP", "UDP"].map((protocol, n) => ({
      name: protocol.toLowerCase(),
      port: 80 + n,
      protocol,
    }));
    return [
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: { namespace: "bench", name: `s${i}` },
        spec: { clusterIP: ip, clusterIPs: [ip], ipFamilies: ["IPv4"], ports },
      },
      {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: { namespace: "bench", name: `s${i}-1`, labels: { "kubernetes.io/service-name": `s${i}` } },
        addressType: "IPv4",
        ports: ports.map(({ name, protocol }) => ({ name, protocol, port: 8080 })),
        endpoints: [...Array(i === 0 ? 1 : endpoints).keys()].map((n) => ({
          addresses: [address(n)],
          conditions: { ready: true },
        })),
      },
    ];
  });
  const node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "node-a" },
    spec: { podCIDRs: ["10.9.0.0/24"] },
    status: { addresses: [{ type: "InternalIP", address: "10.9.0.1" }] },
  };
  return { apiVersion: "v1", kind: "List", items: [node, ...items] };
}
