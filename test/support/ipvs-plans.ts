// Plans of ipvs mode for unit tests, as lines, and a cluster with one Service of every kind.
import type { FamilySettings } from "../../src/config/resolve/settings.ts";
import { parseCidr } from "../../src/model/address.ts";
import type { ServicePort } from "../../src/model/snapshot.ts";
import { compile, type IpvsOptions } from "../../src/modes/ipvs/compile.ts";
import { print } from "../../src/plan/ipvs/print.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "./routed.ts";

const options: IpvsOptions = { scheduler: "", excludeCIDRs: [] };

export function planOf(
  ports: readonly ServicePort[],
  settings: FamilySettings = ipv4Settings,
  more: Partial<IpvsOptions> = {},
) {
  return compile(null, routed(ports, settings), { ...options, ...more });
}

export function lines(plan: ReturnType<typeof planOf>, prefix: string): string[] {
  return print(plan)
    .split("\n")
    .filter((line) => line.startsWith(prefix));
}

export function serverLines(
  ports: readonly ServicePort[],
  settings?: FamilySettings,
  more?: Partial<IpvsOptions>,
): string[] {
  return print(planOf(ports, settings, more))
    .split("\n")
    .filter((line) => /^-[Aa] (-t|-u|--sctp)/.test(line));
}

export const here = endpoint("10.180.0.1:8080");
export const elsewhere = endpoint("10.180.1.1:8080");
export const both = [here, elsewhere];

/** One Service of every kind. */
export const every: readonly ServicePort[] = [
  servicePort("shop/plain", { clusterIP: "172.30.0.10", endpoints: both }),
  servicePort("shop/outside", { clusterIP: "172.30.0.11", externalIPs: ["192.168.99.5"], endpoints: both }),
  servicePort("shop/near", {
    clusterIP: "172.30.0.12",
    externalIPs: ["192.168.99.6"],
    externalPolicy: "local",
    endpoints: both,
  }),
  servicePort("shop/balanced", {
    clusterIP: "172.30.0.13",
    loadBalancerIPs: ["198.51.100.7"],
    nodePort: 30080,
    sourceRanges: ["203.0.113.0/24", "203.0.114.9/32"],
    endpoints: both,
  }),
  servicePort("shop/close", {
    clusterIP: "172.30.0.14",
    loadBalancerIPs: ["198.51.100.8"],
    nodePort: 30081,
    sourceRanges: ["192.168.0.0/16"],
    externalPolicy: "local",
    healthCheckNodePort: 31000,
    endpoints: both,
  }),
  servicePort("shop/dns", {
    clusterIP: "172.30.0.15",
    protocol: "udp",
    port: 53,
    nodePort: 30053,
    endpoints: [],
  }),
  servicePort("shop/log", {
    clusterIP: "172.30.0.16",
    protocol: "udp",
    port: 514,
    nodePort: 30514,
    externalPolicy: "local",
    endpoints: [endpoint("10.180.0.2:514", { state: "unready" })],
  }),
  servicePort("shop/signal", {
    clusterIP: "172.30.0.17",
    protocol: "sctp",
    port: 99,
    nodePort: 30099,
    endpoints: [],
  }),
  servicePort("shop/near-signal", {
    clusterIP: "172.30.0.18",
    protocol: "sctp",
    port: 99,
    nodePort: 30098,
    externalPolicy: "local",
    endpoints: [],
  }),
];

export function sixth(port: ServicePort): ServicePort {
  const six = (text: string) =>
    text.replace(
      /(\d+)\.(\d+)\.(\d+)\.(\d+)/,
      (_, a, b, c, d) => `fd00:${a}:${b}:${c}::${Number(d).toString(16)}`,
    );
  const range = (text: string) =>
    parseCidr(six(text).replace(/\/(\d+)$/, (_, bits) => (bits === "32" ? "/128" : "/64")))!;
  return {
    ...port,
    family: "ipv6",
    clusterIP: six(port.clusterIP),
    externalIPs: port.externalIPs.map(six),
    loadBalancerIPs: port.loadBalancerIPs.map(six),
    sourceRanges: port.sourceRanges.map(range),
    endpoints: port.endpoints.map((each) => ({ ...each, address: six(each.address) })),
  };
}
