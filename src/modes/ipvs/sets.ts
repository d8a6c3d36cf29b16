// The IP sets of ipvs mode: their names, types and the comments of rules that match them.
import type { Family } from "../../model/address.ts";
import type { IpSet, SetName, SetType } from "../../plan/ipvs/types.ts";

/** By short names; entries that accept traffic come before those that block it. */
const table = {
  loopBack: [
    "KUBE-LOOP-BACK",
    "hash:ip,port,ip",
    "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose",
  ],
  clusterIP: [
    "KUBE-CLUSTER-IP",
    "hash:ip,port",
    "Kubernetes service cluster ip + port for masquerade purpose",
  ],
  externalIPLocal: [
    "KUBE-EXTERNAL-IP-LOCAL",
    "hash:ip,port",
    "Kubernetes service external ip + port with externalTrafficPolicy=local",
  ],
  externalIP: [
    "KUBE-EXTERNAL-IP",
    "hash:ip,port",
    "Kubernetes service external ip + port for masquerade and filter purpose",
  ],
  loadBalancerLocal: [
    "KUBE-LOAD-BALANCER-LOCAL",
    "hash:ip,port",
    "Kubernetes service load balancer ip + port with externalTrafficPolicy=local",
  ],
  loadBalancer: ["KUBE-LOAD-BALANCER", "hash:ip,port", "Kubernetes service lb portal"],
  sourceCidr: [
    "KUBE-LOAD-BALANCER-SOURCE-CIDR",
    "hash:ip,port,net",
    "Kubernetes service load balancer ip + port + source cidr for packet filter purpose",
  ],
  sourceIP: [
    "KUBE-LOAD-BALANCER-SOURCE-IP",
    "hash:ip,port,ip",
    "Kubernetes service load balancer ip + port + source IP for packet filter purpose",
  ],
  firewall: [
    "KUBE-LOAD-BALANCER-FW",
    "hash:ip,port",
    "Kubernetes service load balancer ip + port for load balancer with sourceRange",
  ],
  nodePortLocalTcp: [
    "KUBE-NODE-PORT-LOCAL-TCP",
    "bitmap:port",
    "Kubernetes nodeport TCP port with externalTrafficPolicy=local",
  ],
  nodePortTcp: ["KUBE-NODE-PORT-TCP", "bitmap:port", "Kubernetes nodeport TCP port for masquerade purpose"],
  nodePortLocalUdp: [
    "KUBE-NODE-PORT-LOCAL-UDP",
    "bitmap:port",
    "Kubernetes nodeport UDP port with externalTrafficPolicy=local",
  ],
  nodePortUdp: ["KUBE-NODE-PORT-UDP", "bitmap:port", "Kubernetes nodeport UDP port for masquerade purpose"],
  nodePortLocalSctp: [
    "KUBE-NODE-PORT-LOCAL-SCTP-HASH",
    "hash:ip,port",
    "Kubernetes nodeport SCTP port with externalTrafficPolicy=local with type 'hash ip:port'",
  ],
  nodePortSctp: [
    "KUBE-NODE-PORT-SCTP-HASH",
    "hash:ip,port",
    "Kubernetes nodeport SCTP port for masquerade purpose with type 'hash ip:port'",
  ],
  healthCheck: ["KUBE-HEALTH-CHECK-NODE-PORT", "bitmap:port", "Kubernetes health check node port"],
  ipvsIPs: ["KUBE-IPVS-IPS", "hash:ip", "Addresses on the ipvs interface"],
} as const satisfies Record<string, readonly [string, SetType, string]>;

export type Role = keyof typeof table;

export const roles = Object.keys(table) as readonly Role[];

/** All sets of a family, in the order in which entries are added; they are taken out in the opposite one. */
export function setsOf(family: Family): readonly IpSet[] {
  return roles.map((role) => ({ name: setName(role, family), type: table[role][1], family }));
}

/** The kernel takes 31 characters and no more. */
export function setName(role: Role, family: Family): SetName {
  const name = table[role][0];
  return family === "ipv4" ? name : name.replace("KUBE-", "KUBE-6-").slice(0, 31);
}

/** The comment of rules that match the set. */
export function setComment(role: Role): string {
  return table[role][2];
}
