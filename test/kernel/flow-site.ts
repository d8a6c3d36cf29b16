// A daemon on files in the world of namespaces, with Services that a test changes; for tests of flows.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import { contains, families, familyOf } from "../../src/model/address.ts";
import {
  inFamily,
  nodePodNetwork,
  otherNodeName,
  places,
  podNetwork,
  serviceNetwork,
  nodeName as thisNode,
} from "../places.ts";
import { type FilesDaemon, startLine } from "./files-run.ts";
import { createWorld, type World } from "./world.ts";

const root = join(import.meta.dirname, "..", "..");

/** Address, then what is special about the endpoint: `draining` or `unready`, and `zone:b` for a hint. */
export type Place = string;

export type SiteService = {
  readonly name: string;
  readonly protocol?: "TCP" | "UDP";
  /** Its family is that of the Service. */
  readonly clusterIP: string;
  readonly port: number;
  /** 8080 is answered by every pod. */
  readonly targetPort?: number;
  readonly nodePort?: number;
  readonly externalIPs?: readonly string[];
  readonly internalPolicy?: "Local";
  /** Clients stay at their endpoint. */
  readonly sticky?: true;
  readonly endpoints: readonly Place[];
};

export type FlowSite = {
  readonly world: World;
  readonly folder: string;
  readonly socket: string;
  readonly daemon: () => FilesDaemon;
  start(...flags: readonly string[]): Promise<void>;
  stop(): Promise<void>;
  /** Writes the files, and waits until a running daemon serves them. */
  update(services: readonly SiteService[]): Promise<void>;
  /** Runs a command of turnout against the daemon, from outside its network namespace. */
  turnout(...argv: readonly string[]): Promise<{ status: number; stdout: string; stderr: string }>;
  /** What the real conntrack tool lists, one entry a line, without counters of time. */
  conntrack(): string[];
  close(): Promise<void>;
};

export async function openFlowSite(name: string, mode = "nftables"): Promise<FlowSite> {
  const world = await createWorld(name);
  const folder = mkdtempSync(join(tmpdir(), "turnout-flows-"));
  const [files, socket] = [join(folder, "cluster"), join(folder, "status.sock")];
  mkdirSync(files);
  let daemon: FilesDaemon | null = null;
  let marks = 0;
  // Not synchronously: servers and clients of the world run in this process.
  const turnout: FlowSite["turnout"] = (...argv) =>
    new Promise((resolve) => {
      const line = [...argv, `--source=daemon:${socket}`];
      const options = { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 } as const;
      execFile(join(root, "bin", "turnout"), line, options, (error, stdout, stderr) =>
        resolve({ status: Number(error?.code ?? 0), stdout, stderr }),
      );
    });
  const list = mode === "iptables" ? "iptables-save; ip6tables-save" : "nft list ruleset";
  const untilApplied = async () => {
    await vi.waitFor(
      () => {
        if (daemon!.code() !== null) throw new Error(`the daemon ended: ${daemon!.log()}`);
        const rules = world.node.run("sh", "-c", list);
        for (const { clusterIP } of marksOf(marks))
          if (!rules.includes(clusterIP)) throw new Error(`no rules for ${clusterIP}`);
      },
      { timeout: 60_000, interval: 100 },
    );
  };
  return {
    world,
    folder,
    socket,
    turnout,
    daemon: () => daemon!,
    async start(...flags) {
      const line = `bin/turnout run --mode=${mode} --source=files:${files} --hostname-override=node-a --cluster-cidr=${inBoth(podNetwork).join(",")} --conntrack-max-per-core=0 --conntrack-min=0 --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0 --status-socket=${socket} -v=2 ${flags.join(" ")}`;
      daemon = startLine(world.node, line);
      await untilApplied();
    },
    async stop() {
      await daemon?.stop();
      daemon = null;
    },
    async update(services) {
      marks++;
      const objects = [...base, ...[...services, ...marksOf(marks)].flatMap(objectsOf)];
      writeFileSync(join(folder, "next"), JSON.stringify({ kind: "List", apiVersion: "v1", items: objects }));
      renameSync(join(folder, "next"), join(files, "cluster.json"));
      if (daemon !== null) await untilApplied();
    },
    conntrack: () =>
      ["ipv4", "ipv6"]
        .flatMap((family) => world.node.run("conntrack", "-L", "-f", family, "-o", "id").split("\n"))
        .filter((line) => line !== "")
        .map((line) => line.replace(/^(\w+\s+\d+) \d+/, "$1"))
        .sort(),
    async close() {
      await daemon?.stop();
      await world.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const inBoth = (text: string) => families.map((family) => inFamily(text, family));

/** Services that exist only to show that the daemon has read the files, in each family. */
function marksOf(count: number): SiteService[] {
  return inBoth(`172.30.9.${100 + count}`).map((clusterIP) => ({
    name: `mark/${count}-${familyOf(clusterIP)}`,
    clusterIP,
    port: 1,
    endpoints: [],
  }));
}

const base = [
  {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: thisNode, labels: { "topology.kubernetes.io/zone": "a" } },
    spec: { podCIDRs: inBoth(nodePodNetwork) },
    status: { addresses: inBoth(places.host).map((address) => ({ type: "InternalIP", address })) },
  },
  {
    apiVersion: "networking.k8s.io/v1",
    kind: "ServiceCIDR",
    metadata: { name: "kubernetes" },
    spec: { cidrs: inBoth(serviceNetwork) },
  },
];

function objectsOf(service: SiteService): object[] {
  const [namespace, name] = service.name.split("/");
  const addressType = familyOf(service.clusterIP) === "ipv4" ? "IPv4" : "IPv6";
  const { protocol = "TCP", clusterIP, port, targetPort = 8080, nodePort, externalIPs, endpoints } = service;
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { namespace, name },
      spec: {
        type: nodePort === undefined ? "ClusterIP" : "NodePort",
        clusterIP,
        clusterIPs: [clusterIP],
        ipFamilies: [addressType],
        ...(externalIPs === undefined ? {} : { externalIPs }),
        ...(service.internalPolicy === undefined ? {} : { internalTrafficPolicy: service.internalPolicy }),
        ...(service.sticky === undefined ? {} : { sessionAffinity: "ClientIP" }),
        ports: [{ port, protocol, targetPort, ...(nodePort === undefined ? {} : { nodePort }) }],
      },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { namespace, name: `${name}-1`, labels: { "kubernetes.io/service-name": name } },
      addressType,
      ports: [{ port: targetPort, protocol }],
      endpoints: endpoints.map(endpointOf),
    },
  ];
}

function endpointOf(place: Place): object {
  const [address, ...words] = place.split(" ") as [string, ...string[]];
  const zones = words.flatMap((word) => (word.startsWith("zone:") ? [{ name: word.slice(5) }] : []));
  const isTerminating = words.includes("draining") || words.includes("unready");
  const isHere = inBoth(nodePodNetwork).some((network) => contains(network, address));
  return {
    addresses: [address],
    nodeName: isHere ? thisNode : otherNodeName,
    conditions: {
      ready: !isTerminating,
      serving: !words.includes("unready"),
      terminating: isTerminating,
    },
    ...(zones.length === 0 ? {} : { hints: { forZones: zones } }),
  };
}
