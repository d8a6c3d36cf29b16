// A node with the daemon on files, two pods and a client outside, which sends known numbers of connections and bytes.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { queryDaemon } from "../../src/observe/status/client.ts";
import type { PortTraffic, TrafficReport } from "../../src/observe/traffic/report.ts";
import { type FilesDaemon, startLine } from "./files-run.ts";
import { createNamespace, type Namespace } from "./netns.ts";
import { eventually } from "./site.ts";

export const requestBytes = 100;
export const responseBytes = 1000;

export type TrafficRig = {
  readonly node: Namespace;
  /** Writes the cluster's objects; the daemon follows. */
  write(yaml: string): void;
  start(traffic: string, mode?: string, ...flags: readonly string[]): Promise<void>;
  /** From now on the daemon cannot write this file, in its own mount namespace. */
  makeReadOnly(file: string): void;
  stop(): Promise<void>;
  /** Sends a signal to the daemon. */
  signal(name: NodeJS.Signals): void;
  /** Sends connections one after the other from outside, or from the node; returns how many were answered. */
  send(how: Sending): number;
  traffic(): Promise<TrafficReport>;
  portNamed(name: string): Promise<PortTraffic | undefined>;
  metrics(): string;
  /** Keeps a connection from outside open until the returned function is called. */
  hold(to: Pick<Sending, "to" | "port">): () => void;
  /** What a command prints about this node. */
  turnout(command: string, ...args: readonly string[]): string;
  top(...args: readonly string[]): string;
  log(): string;
  close(): Promise<void>;
};

export type Sending = {
  readonly to: string;
  readonly port: number;
  readonly count: number;
  readonly udp?: boolean;
  readonly from?: "client" | "node";
  /** How long to wait for each answer; a minute unless some will not come. */
  readonly timeoutMs?: number;
};

const server = `
const net = require("node:net"), dgram = require("node:dgram");
const answer = Buffer.alloc(${responseBytes});
net.createServer((c) => { let n = 0; c.on("data", (d) => { n += d.length; if (n === ${requestBytes}) c.end(answer); }); c.on("error", () => {}); }).listen(8080, "::");
for (const address of ["10.8.0.2", "10.8.0.3", "fd00:8::2", "fd00:8::3"]) { const s = dgram.createSocket(address.includes(":") ? "udp6" : "udp4"); s.on("message", (_, from) => s.send(answer, from.port, from.address)); s.bind(8080, address); }
console.log("ready");
`;

const client = `
const net = require("node:net"), dgram = require("node:dgram");
const { to, port, count, udp, timeoutMs } = JSON.parse(process.argv[1]);
const request = Buffer.alloc(${requestBytes});
const tcp = () => new Promise((done) => {
  let n = 0;
  const c = net.connect({ host: to, port, timeout: timeoutMs }, () => c.write(request));
  c.on("data", (d) => (n += d.length));
  c.on("timeout", () => c.destroy());
  c.on("error", () => {});
  c.on("close", () => done(n === ${responseBytes}));
});
const datagram = () => new Promise((done) => {
  const s = dgram.createSocket(to.includes(":") ? "udp6" : "udp4");
  const end = (ok) => { clearTimeout(timer); s.close(); done(ok); };
  const timer = setTimeout(() => end(false), timeoutMs);
  s.on("message", () => end(true));
  s.on("error", () => end(false));
  s.send(request, port, to);
});
(async () => {
  let answered = 0;
  for (let i = 0; i < count; i++) if (await (udp ? datagram() : tcp())) answered++;
  console.log(answered);
})();
`;

/** `startMs`: the longest that the first Syncs and the first read may take. */
export async function openTrafficRig(startMs = 30_000): Promise<TrafficRig> {
  const [node, pods, outside] = ["node", "pods", "outside"].map((name) => createNamespace(`traffic-${name}`));
  connect(node!, pods!, outside!);
  const folder = mkdtempSync(join(tmpdir(), "turnout-traffic-"));
  const socket = join(folder, "status.sock");
  const servers = await startServers(pods!);
  let daemon: FilesDaemon | null = null;
  let mounts = "";
  const traffic = async () => (await queryDaemon(socket, "/traffic"))!;
  const turnout = (command: string, ...args: readonly string[]) =>
    node!.run("bin/turnout", command, `--source=daemon:${socket}`, ...args);
  return {
    node: node!,
    write: (yaml) => writeFileSync(join(folder, "cluster.yaml"), yaml),
    async start(setting, mode = "nftables", ...flags) {
      daemon = startLine(
        node!,
        `sh -c '${mounts} exec bin/turnout run --source=files:${folder}/cluster.yaml --hostname-override=node-a --mode=${mode} --status-socket=${socket} --traffic=${setting} --metrics-bind-address=127.0.0.1:10249 --cluster-cidr=10.8.0.0/16,fd00:8::/64 --detect-local-mode=ClusterCIDR ${flags.join(" ")}'`,
      );
      const isReady = async () => {
        if (daemon!.code() !== null) throw new Error(`the daemon ended: ${daemon!.log()}`);
        const status = await queryDaemon(socket, "/").catch(() => null);
        if (Object.keys(status?.lastSuccess ?? {}).length < 2) return false;
        return setting === "off" || (await traffic()).at !== null;
      };
      await eventually(isReady, "the daemon has synced and read the counters", startMs, 50);
    },
    makeReadOnly(file) {
      mounts = `mount --bind ${file} ${file} && mount -o remount,bind,ro ${file} &&`;
    },
    async stop() {
      await daemon?.stop();
      daemon = null;
    },
    signal: (name) => void process.kill(daemon!.pid(), name),
    send({ from = "client", timeoutMs = 60_000, ...how }) {
      const at = from === "client" ? outside! : node!;
      return Number(at.run(process.execPath, "-e", client, JSON.stringify({ ...how, timeoutMs })));
    },
    traffic,
    portNamed: async (name) => (await traffic()).ports.find((port) => port.name === name),
    hold({ to, port }) {
      const script = `require("node:net").connect({ host: "${to}", port: ${port} }).on("error", () => {})`;
      const child = outside!.inside(() => spawn(process.execPath, ["-e", script], { stdio: "ignore" }));
      return () => void child.kill();
    },
    turnout,
    top: (...args) => turnout("top", ...args),
    metrics: () => node!.run("curl", "-s", "http://127.0.0.1:10249/metrics"),
    log: () => daemon?.log() ?? "",
    async close() {
      await daemon?.stop();
      servers.kill();
      for (const each of [node!, pods!, outside!]) each.remove();
      rmSync(folder, { recursive: true });
    },
  };
}

function connect(node: Namespace, pods: Namespace, outside: Namespace): void {
  const wires = [
    [pods, "pod0", "10.8.0", "fd00:8::"],
    [outside, "out0", "192.168.7", "fd00:7::"],
  ] as const;
  node.ip("link set lo up");
  for (const [there, name, v4, v6] of wires) {
    node.ip(
      `link add ${name} type veth peer name eth0 netns ${there.name}`,
      `addr add ${v4}.1/24 dev ${name}`,
      `addr add ${v6}1/64 dev ${name} nodad`,
      `link set ${name} up`,
    );
    there.ip(
      "link set lo up",
      `addr add ${v4}.2/24 dev eth0`,
      `addr add ${v4}.3/24 dev eth0`,
      `addr add ${v6}2/64 dev eth0 nodad`,
      `addr add ${v6}3/64 dev eth0 nodad`,
      "link set eth0 up",
      `route add default via ${v4}.1`,
      `route add default via ${v6}1 dev eth0`,
    );
  }
  // Without a route, packets to addresses of Services would be refused before any rule sees them.
  node.ip("route add default via 192.168.7.2", "route add default via fd00:7::2 dev out0");
  node.sysctl({ "net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1 });
}

async function startServers(pods: Namespace): Promise<ChildProcess> {
  const child = pods.inside(() =>
    spawn(process.execPath, ["-e", server], { stdio: ["ignore", "pipe", "inherit"] }),
  );
  await new Promise((resolve) => child.stdout!.once("data", resolve));
  return child;
}
