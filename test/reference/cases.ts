// Generates cluster states and configurations that are valid, small, and together use every feature.
import { families as bothFamilies, type Family } from "../../src/model/address.ts";
import { nodeName, nodeNetwork, podInterfacePrefix, twin } from "../places.ts";
import { slicesFor } from "./case-slices.ts";
import type { KubeObject } from "./objects.ts";
import {
  addressOf,
  clusterCIDRs,
  clusterIP,
  externalIP,
  loadBalancerIP,
  loadBalancerNumbersOnNode,
  podCIDRs,
  serviceCIDRs,
  sourceRanges,
  zones,
} from "./places.ts";
import type { Configuration, Mode } from "./proxy.ts";
import { type Random, seeded } from "./random.ts";

export type Case = {
  readonly seed: number;
  readonly configuration: Configuration;
  readonly objects: readonly KubeObject[];
};

/** Which Services' objects a state holds, so that a failing one can be made smaller by leaving Services out. */
export type ServiceCase = { readonly name: string; readonly objects: readonly KubeObject[] };

/** Gives more than 1,000 endpoints: the iptables mode then writes fewer comments and keeps unused chains. */
export const largeSeed = 0;

export function generateCase(seed: number, mode: Mode): Case {
  const random = seeded(seed);
  const configuration = generateConfiguration(random, mode);
  return { seed, configuration, objects: generateState(seed) };
}

/** A cluster as one seed describes it; a history is a sequence of seeds. */
export function generateState(seed: number): readonly KubeObject[] {
  return [...surroundings(seed), ...generateServices(seed).flatMap((service) => service.objects)];
}

export function generateServices(seed: number): readonly ServiceCase[] {
  const random = seeded(seed ^ 0x5e41ce);
  const count = seed === largeSeed ? 600 : random.between(2, 7);
  const nodePorts = random
    .sample([...Array(3 * count + 40).keys()], Number.POSITIVE_INFINITY)
    .map((n) => 30000 + n);
  return Array.from({ length: count }, (_, i) => generateService(random, i + 1, nodePorts));
}

export function generateConfiguration(random: Random, mode: Mode): Configuration {
  const detector = random.one([
    { detectLocalMode: "ClusterCIDR", clusterCIDR: clusterCIDRs },
    { detectLocalMode: "ClusterCIDR", clusterCIDR: clusterCIDRs },
    { detectLocalMode: "ClusterCIDR" },
    { detectLocalMode: "NodeCIDR" },
    { detectLocalMode: "InterfaceNamePrefix", detectLocal: { interfaceNamePrefix: podInterfacePrefix } },
  ]);
  const nodePortAddresses = random.one([
    [],
    [],
    ["primary"],
    [nodeNetwork, twin(nodeNetwork)],
    ["0.0.0.0/0", "::/0"],
  ]);
  const own = {
    masqueradeAll: random.chance(0.15),
    ...(random.chance(0.1) ? { masqueradeBit: random.between(0, 31) } : {}),
    ...(mode === "iptables" && random.chance(0.2) ? { localhostNodePorts: false } : {}),
  };
  return { mode, ...detector, nodePortAddresses, [mode]: own };
}

/** The Node and the ServiceCIDR. Its zone is a choice of the state, its addresses are not. */
export function surroundings(seed: number): readonly KubeObject[] {
  const random = seeded(seed ^ 0x20de);
  const labels = { ...(random.chance(0.85) ? { "topology.kubernetes.io/zone": random.one(zones) } : {}) };
  return [
    {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: nodeName, labels: { "kubernetes.io/hostname": nodeName, ...labels } },
      spec: { podCIDR: podCIDRs[0], podCIDRs },
      status: {
        addresses: bothFamilies.map((family) => ({ type: "InternalIP", address: addressOf("host", family) })),
      },
    },
    {
      apiVersion: "networking.k8s.io/v1",
      kind: "ServiceCIDR",
      metadata: { name: "kubernetes" },
      spec: { cidrs: serviceCIDRs },
    },
  ];
}

function generateService(random: Random, n: number, freeNodePorts: number[]): ServiceCase {
  const name = random.one(["web", "dns", "api", "a", "long-name-with-0-digits"]) + n;
  const namespace = random.one(["shop", "kube-system", "default"]);
  const families = random.one<readonly Family[]>([
    ["ipv4"],
    ["ipv4"],
    ["ipv6"],
    ["ipv4", "ipv6"],
    ["ipv4", "ipv6"],
    ["ipv6", "ipv4"],
  ]);
  const type = random.one(["ClusterIP", "ClusterIP", "NodePort", "NodePort", "LoadBalancer", "LoadBalancer"]);
  const ports = generatePorts(random, type, freeNodePorts);
  const ranges = random.chance(0.4)
    ? random.sample(
        families.flatMap((f) => sourceRanges[f]),
        2,
      )
    : [];
  const externalIPs = random.chance(0.35)
    ? families.map((family) => externalIP(family, n)).slice(0, random.between(1, 2))
    : [];
  const externalPolicy = random.one(["Cluster", "Local"]);
  const external = type !== "ClusterIP" || externalIPs.length > 0;
  const clusterIPs = families.map((family) => clusterIP(family, n));
  const service: KubeObject = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace, ...proxyName(random) },
    spec: {
      type,
      clusterIP: clusterIPs[0],
      clusterIPs,
      ipFamilies: families.map((family) => (family === "ipv4" ? "IPv4" : "IPv6")),
      ipFamilyPolicy: families.length === 2 ? "RequireDualStack" : "SingleStack",
      ports,
      internalTrafficPolicy: random.chance(0.25) ? "Local" : "Cluster",
      ...(external ? { externalTrafficPolicy: externalPolicy } : {}),
      ...(externalIPs.length > 0 ? { externalIPs } : {}),
      ...(type === "LoadBalancer" && ranges.length > 0 ? { loadBalancerSourceRanges: ranges } : {}),
      ...(type === "LoadBalancer" && externalPolicy === "Local" ? { healthCheckNodePort: 32000 + n } : {}),
      ...affinity(random),
    },
    status: { loadBalancer: type === "LoadBalancer" ? ingress(random, families, n) : {} },
  };
  return {
    name: `${namespace}/${name}`,
    objects: [service, ...slicesFor(random, { name, namespace, families, ports })],
  };
}

export type Port = {
  readonly name?: string;
  readonly protocol: "TCP" | "UDP" | "SCTP";
  readonly port: number;
  readonly nodePort?: number;
};

function generatePorts(random: Random, type: string, freeNodePorts: number[]): readonly Port[] {
  const protocols = random.one([
    ["TCP"],
    ["TCP"],
    ["UDP"],
    ["TCP", "UDP"],
    ["UDP", "TCP"],
    ["TCP", "SCTP"],
    ["TCP", "TCP"],
  ] as const);
  const withNodePort = type === "NodePort" || (type === "LoadBalancer" && random.chance(0.85));
  return protocols.map((protocol, i) => ({
    ...(protocols.length > 1 || random.chance(0.5) ? { name: `p${i}` } : {}),
    protocol,
    // Two ports of one protocol need different numbers; TCP and UDP may well share one.
    port: protocols[0] === protocols[1] ? 80 + i : 80,
    ...(withNodePort ? { nodePort: freeNodePorts.pop()! } : {}),
  }));
}

function affinity(random: Random): object {
  if (!random.chance(0.2)) return { sessionAffinity: "None" };
  const timeoutSeconds = random.one([10800, 60, 300]);
  return { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds } } };
}

function ingress(random: Random, families: readonly Family[], n: number): object {
  if (random.chance(0.1)) return { ingress: [{ hostname: "lb.example.net" }] };
  const ipMode = random.chance(0.15) ? "Proxy" : "VIP";
  const number =
    n <= loadBalancerNumbersOnNode.length && random.chance(0.3) ? loadBalancerNumbersOnNode[n - 1]! : n;
  return {
    ingress: families.map((family) => ({
      ip: loadBalancerIP(family, number),
      ...(random.chance(0.7) ? { ipMode } : {}),
    })),
  };
}

function proxyName(random: Random): object {
  return random.chance(0.04) ? { labels: { "service.kubernetes.io/service-proxy-name": "other" } } : {};
}
