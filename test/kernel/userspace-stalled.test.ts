// Datagrams that cannot leave the node in userspace mode, because no neighbour resolves their destination: they are dropped, not queued.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { places } from "../places.ts";
import { readScenario } from "../scenarios.ts";
import { daemonAmongPods } from "./among-pods.ts";
import { AF_INET, close, type Endpoint, SOCK_DGRAM, sendTo, socket } from "./libc.ts";
import type { Namespace } from "./netns.ts";
import { resultOf } from "./probe.ts";
import { macs } from "./world.ts";

const objects = ["udp-flows", "cluster-ip"].flatMap((name) => readScenario(name).objects);
const nobody = { clusterIP: "172.30.0.99", endpoint: "192.168.0.77" };

describe("datagrams that cannot leave", () => {
  const node = daemonAmongPods([...objects, ...serviceOf(nobody)]);

  /** Starts a daemon whose kernel keeps resolving neighbours, and queues packets for them. */
  async function started() {
    node.world.node.sysctl({
      "net.ipv4.neigh.eth0.mcast_solicit": 600,
      "net.ipv4.neigh.eth0.unres_qlen_bytes": 1 << 28,
    });
    return node.started({ mode: "userspace" });
  }

  /** By how many megabytes the daemon grows while other Services are served. */
  async function grownBy(pid: number, work: () => Promise<void>): Promise<number> {
    const before = residentMB(pid);
    await work();
    const grown = residentMB(pid) - before;
    const to = { address: "172.30.0.1", port: 80, protocol: "tcp" as const };
    const from = { kind: "pod" as const, address: places.L2 };
    expect(await resultOf(node.world, { from, to })).toMatchObject({ kind: "answered" });
    return grown;
  }

  it.for([
    ["large", 60_000, 4000, 100],
    ["small", 1, 60_000, 30],
  ] as const)("to an endpoint, %s ones", async ([, size, count, most]) => {
    const { pid } = await started();
    const to = { address: nobody.clusterIP, port: 80 };
    const flooded = () => flood(node.world.node, to, Buffer.alloc(size), count);
    expect(await grownBy(pid, flooded)).toBeLessThan(most);
  });

  it("back to a client", async () => {
    const { X } = node.world.at;
    // It neither sends nor responds.
    X.ip(`neigh replace ${places.host} lladdr ${macs.host} dev eth0 nud permanent`);
    X.sysctl({ "net.ipv4.conf.all.arp_ignore": 8 });
    const { pid } = await started();
    const flooded = () => flood(X, { address: places.host, port: 30_085 }, Buffer.alloc(1), 30_000);
    expect(await grownBy(pid, flooded)).toBeLessThan(15);
  });

  /** As fast as the daemon takes them. */
  async function flood(sender: Namespace, to: Endpoint, data: Buffer, count: number): Promise<void> {
    const fd = sender.inside(() => socket(AF_INET, SOCK_DGRAM, 0));
    const burst = Math.max(4, Math.min(100, 200_000 / (data.length + 800)));
    try {
      for (let sent = 0; sent < count; ) {
        for (let i = 0; i < burst; i++, sent++) sendTo(fd, data, to);
        while (!isTaken(node.world.node)) await sleep(1);
      }
    } finally {
      close(fd);
    }
  }
});

/** Whether nothing waits in any UDP socket of the namespace. */
function isTaken(netns: Namespace): boolean {
  const [, ...lines] = netns.inside(() => readFileSync("/proc/thread-self/net/udp", "utf8")).split("\n");
  return lines.every((line) => line === "" || /^ *\S+ \S+ \S+ \S+ \S+:00000000 /.test(line));
}

function residentMB(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

function serviceOf({ clusterIP, endpoint }: typeof nobody) {
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "nobody", namespace: "black" },
      spec: { clusterIP, clusterIPs: [clusterIP], ports: [{ port: 80, protocol: "UDP" }] },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name: "nobody-1", namespace: "black", labels: { "kubernetes.io/service-name": "nobody" } },
      addressType: "IPv4",
      ports: [{ name: "", port: 8080, protocol: "UDP" }],
      endpoints: [{ addresses: [endpoint], conditions: { ready: true } }],
    },
  ];
}
