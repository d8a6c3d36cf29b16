// What the pure core needs of the configuration and of this node, resolved for one family.
import type { Address, Cidr, Family } from "../../model/address.ts";

/** How traffic of pods on this node is recognised. `none`: it is not. */
export type LocalDetector =
  | { readonly kind: "none" }
  | { readonly kind: "cidr"; readonly cidr: Cidr }
  | { readonly kind: "interface"; readonly name: string }
  | { readonly kind: "interfacePrefix"; readonly prefix: string };

/** Where NodePorts answer: on every local address, or on those inside the given networks. */
export type NodePortAddresses =
  | { readonly kind: "all" }
  | { readonly kind: "some"; readonly cidrs: readonly Cidr[] };

/** What the kernel counts: nothing, connections of Services, or also those of each endpoint. */
export const trafficSettings = ["off", "services", "endpoints"] as const;
export type TrafficSetting = (typeof trafficSettings)[number];

/** Settings of one family; everything routing and modes read. Same settings, same Plan. */
export type FamilySettings = {
  readonly family: Family;
  readonly nodeName: string;
  /** Label `topology.kubernetes.io/zone` of this node; empty when absent. */
  readonly zone: string;
  /** This node's address in the family; a loopback address when unknown. */
  readonly nodeIP: Address;
  /** Every address on this node's interfaces in the family, sorted; follows the host. */
  readonly localAddresses: readonly Address[];
  readonly detector: LocalDetector;
  readonly masqueradeAll: boolean;
  /** `1 << masqueradeBit`. */
  readonly masqueradeMark: number;
  readonly nodePortAddresses: NodePortAddresses;
  /** iptables: NodePorts on 127.0.0.0/8 (only ever true for ipv4). */
  readonly localhostNodePorts: boolean;
  /** nftables, gate KubeProxyNFTablesLocalhostNodePorts: what happens on loopback. */
  readonly nftLocalhost: "pass" | "reject" | "serve";
  /** Gate AllowServiceExternalIPs. */
  readonly externalIPsAllowed: boolean;
  /** conntrack.tcpBeLiberal or the sysctl: then no INVALID drop in iptables mode. */
  readonly tcpBeLiberal: boolean;
  /** What is counted per Service: `--traffic`. */
  readonly traffic: TrafficSetting;
};
