// Generates one Service: every type, policy, protocol and kind of address, each from its own seed.
import { families as bothFamilies, type Family } from "../../src/model/address.ts";
import { secondNodeAddress } from "../places.ts";
import { slicesFor } from "./case-slices.ts";
import type { KubeObject } from "./objects.ts";
import {
  clusterIP,
  externalIP,
  loadBalancerIP,
  loadBalancerNumbersOnNode,
  sharedLoadBalancerNumber,
  sourceRanges,
} from "./places.ts";
import { type Random, seeded } from "./random.ts";

/** A Service's place in the cluster, with a seed for each of its parts, so that a step can change one of them. */
export type Slot = {
  /** From 1; addresses and ports follow from it. */
  readonly n: number;
  readonly name: number;
  readonly spec: number;
  readonly slices: number;
};

/** The objects of one Service, so that a failing state can be made smaller by leaving Services out. */
export type ServiceCase = { readonly name: string; readonly objects: readonly KubeObject[] };

export type Port = {
  readonly name?: string;
  readonly protocol: "TCP" | "UDP" | "SCTP";
  readonly port: number;
  readonly nodePort?: number;
};

/** Health check ports for the Services of small clusters. */
export const healthCheckPorts: readonly number[] = [1, 2, 3, 4, 5, 6, 7, 8].map(healthCheckPort);

function healthCheckPort(n: number): number {
  return 32_000 + n;
}

/** `shift` moves the node ports from Service to Service. */
export function generateService(
  { n, name: nameSeed, spec: specSeed, slices }: Slot,
  shift: number,
): ServiceCase {
  const who = seeded(nameSeed);
  const name = who.one(["web", "dns", "api", "a", "long-name-with-0-digits"]) + n;
  const namespace = who.one(["shop", "kube-system", "default"]);
  const primary = who.one<Family>(["ipv4", "ipv4", "ipv6"]);
  const random = seeded(specSeed);
  const families = random.chance(0.5)
    ? [primary]
    : ([primary, primary === "ipv4" ? "ipv6" : "ipv4"] as const);
  const metadata = { name, namespace, ...proxyName(random) };
  const { spec, status } = specOf(random, n, shift, families);
  const service: KubeObject = { apiVersion: "v1", kind: "Service", metadata, spec, status };
  const owner = { name, namespace, families, ports: spec.ports };
  return { name: `${namespace}/${name}`, objects: [service, ...slicesFor(seeded(slices), owner)] };
}

type Spec = { readonly ports: readonly Port[]; readonly [field: string]: unknown };

function specOf(
  random: Random,
  n: number,
  shift: number,
  families: readonly Family[],
): { spec: Spec; status: object } {
  const type = random.one(types);
  // Some load balancers assign one address to several Services with different ports.
  const shared = type === "LoadBalancer" && random.chance(0.2);
  const ports = generatePorts(random, type, shared ? 1000 + 10 * n : 80, 30_000 + 2 * ((n + shift) % 700));
  const common = {
    ipFamilies: families.map((family) => (family === "ipv4" ? "IPv4" : "IPv6")),
    ipFamilyPolicy: families.length === 2 ? "RequireDualStack" : "SingleStack",
    ports,
  };
  const noBalancer = { loadBalancer: {} };
  if (type === "ExternalName")
    return {
      spec: { type, externalName: "example.net", ports, sessionAffinity: "None" },
      status: noBalancer,
    };
  if (type === "headless") {
    const spec = {
      ...common,
      type: "ClusterIP",
      clusterIP: "None",
      clusterIPs: ["None"],
      sessionAffinity: "None",
    };
    return { spec, status: noBalancer };
  }
  const externalIPs = random.chance(0.35) ? externalAddresses(random, families, n) : [];
  const externalPolicy = random.one(["Cluster", "Local"]);
  const external = type !== "ClusterIP" || externalIPs.length > 0;
  const clusterIPs = families.map((family) => clusterIP(family, n));
  const spec = {
    ...common,
    type,
    clusterIP: clusterIPs[0],
    clusterIPs,
    internalTrafficPolicy: random.chance(0.25) ? "Local" : "Cluster",
    ...(external ? { externalTrafficPolicy: externalPolicy } : {}),
    ...(externalIPs.length > 0 ? { externalIPs } : {}),
    ...(type === "LoadBalancer" ? admitted(random) : {}),
    ...(type === "LoadBalancer" && externalPolicy === "Local"
      ? { healthCheckNodePort: healthCheckPort(n) }
      : {}),
    ...affinity(random),
  };
  const loadBalancer =
    type === "LoadBalancer" ? ingress(random, families, shared ? sharedLoadBalancerNumber : n) : {};
  return { spec, status: { loadBalancer } };
}

type Type = "ClusterIP" | "NodePort" | "LoadBalancer" | "headless" | "ExternalName";

const types: readonly Type[] = [
  ...Array<Type>(6).fill("ClusterIP"),
  ...Array<Type>(6).fill("NodePort"),
  ...Array<Type>(7).fill("LoadBalancer"),
  "headless",
  "ExternalName",
];

function generatePorts(random: Random, type: Type, first: number, nodePort: number): readonly Port[] {
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
    port: protocols[0] === protocols[1] ? first + i : first,
    ...(withNodePort ? { nodePort: nodePort + i } : {}),
  }));
}

/** One of them may be an address of the node itself; one may be of a family that the Service does not have. */
function externalAddresses(random: Random, families: readonly Family[], n: number): readonly string[] {
  if (n === 1 && families.includes("ipv4") && random.chance(0.3)) return [secondNodeAddress];
  const some = random.chance(0.2) ? bothFamilies : families;
  return some.map((family) => externalIP(family, n)).slice(0, random.between(1, 2));
}

/** Ranges of both families, whatever the Service's are; a family without ranges admits all sources. */
function admitted(random: Random): object {
  if (!random.chance(0.4)) return {};
  const all = bothFamilies.flatMap((family) => sourceRanges[family]);
  return { loadBalancerSourceRanges: random.sample(all, random.between(1, 3)) };
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
  const numbers = n < 50 && random.chance(0.15) ? [number, n + 50] : [number];
  const some = random.chance(0.1) ? bothFamilies : families;
  return {
    ingress: numbers.flatMap((each) =>
      some.map((family) => ({
        ip: loadBalancerIP(family, each),
        ...(random.chance(0.7) ? { ipMode } : {}),
      })),
    ),
  };
}

function proxyName(random: Random): object {
  return random.chance(0.04) ? { labels: { "service.kubernetes.io/service-proxy-name": "other" } } : {};
}
