// Computes the settings of each family from the configuration and this node.
import type { Address, Cidr, Family } from "../../model/address.ts";
import type { ValidConfig } from "../config.ts";
import { type Gates, resolveGates } from "../gates/gates.ts";
import { modes } from "../modes.ts";
import { localDetector } from "./local-detector.ts";
import { chooseNodeIPs, type NodeIPs } from "./node-ips.ts";
import {
  expandNodePortAddresses,
  includesIPv4Loopback,
  namesLoopback,
  nodePortAddressesOf,
} from "./node-port-addresses.ts";
import type { FamilySettings, TrafficSetting } from "./settings.ts";

/** What the cluster and the host report about this node. */
export type NodeFacts = {
  readonly nodeName: string;
  /** Addresses of the Node object: the first, and the first of the other family. */
  readonly nodeIPs: readonly Address[];
  readonly podCIDRs: readonly Cidr[];
  readonly zone: string;
  /** Every address on this node's interfaces. */
  readonly localAddresses: Readonly<Record<Family, readonly Address[]>>;
  /** The sysctl `nf_conntrack_tcp_be_liberal` is on. */
  readonly tcpBeLiberal: boolean;
  /** `--traffic`; absent: off. */
  readonly traffic?: TrafficSetting;
};

export type Resolved = {
  readonly nodeIPs: NodeIPs;
  /** `nodePortAddresses` with its keywords expanded, both families. */
  readonly nodePortCIDRs: readonly Cidr[];
  readonly settings: Readonly<Record<Family, FamilySettings>>;
};

export function resolve(config: ValidConfig, facts: NodeFacts): Resolved {
  const nodeIPs = chooseNodeIPs(facts.nodeIPs, config.bindAddress);
  const nodePortCIDRs = expandNodePortAddresses(config.nodePortAddresses ?? [], nodeIPs.addresses);
  const { enabled } = resolveGates(config.featureGates);
  const of = (family: Family): FamilySettings => ({
    family,
    nodeName: facts.nodeName,
    zone: facts.zone,
    nodeIP: nodeIPs.addresses[family],
    localAddresses: facts.localAddresses[family].toSorted(),
    detector: localDetector(config, facts.podCIDRs, family),
    masqueradeAll: config.masqueradeAll,
    masqueradeMark: masqueradeMark(config),
    ...nodePortSettings(config, nodePortCIDRs, family, enabled),
    externalIPsAllowed: enabled("AllowServiceExternalIPs"),
    tcpBeLiberal: config.conntrack.tcpBeLiberal || facts.tcpBeLiberal,
    traffic: facts.traffic ?? "off",
  });
  return { nodeIPs, nodePortCIDRs, settings: { ipv4: of("ipv4"), ipv6: of("ipv6") } };
}

/** The name of this node: what was configured, else the host's name. Empty: there is none. */
export function nodeNameOf(config: Pick<ValidConfig, "hostnameOverride">, hostname: string): string {
  return (config.hostnameOverride || hostname).trim().toLowerCase();
}

function nodePortSettings(config: ValidConfig, cidrs: readonly Cidr[], family: Family, enabled: Gates) {
  const nodePortAddresses = nodePortAddressesOf(cidrs, family);
  const served = namesLoopback(cidrs, family) ? "serve" : "reject";
  return {
    nodePortAddresses,
    localhostNodePorts:
      family === "ipv4" && config.iptables.localhostNodePorts && includesIPv4Loopback(nodePortAddresses),
    nftLocalhost: enabled("KubeProxyNFTablesLocalhostNodePorts") ? served : "pass",
  } as const;
}

function masqueradeMark(config: ValidConfig): number {
  return (1 << config[modes[config.mode].masquerade].masqueradeBit) >>> 0;
}
