// Warnings about a configuration that is allowed but does not fit this node: wrong family, NodePorts wide open.
import { type Cidr, type Family, familyOf, parseAddress, parseCidr } from "../../model/address.ts";
import type { ValidConfig } from "../config.ts";
import { splitHostPort } from "../units/host-port.ts";
import type { Resolved } from "./resolve.ts";

export type ConfigWarning = { readonly message: string; readonly fatal: boolean };

const names: Readonly<Record<Family, string>> = { ipv4: "IPv4", ipv6: "IPv6" };

/** A warning when NodePorts answer on unintended addresses; null: none. */
export function nodePortWarning(
  config: ValidConfig,
  podCIDRs: readonly Cidr[],
  resolved: Resolved,
): string | null {
  const { primary } = resolved.nodeIPs;
  const [own, other] = [names[primary], names[otherOf(primary)]];
  const cidrs = resolved.nodePortCIDRs;
  const inPrimary = cidrs.filter((cidr) => familyOf(cidr) === primary).length;
  if (cidrs.length === 0) {
    return "nodePortAddresses is unset: NodePorts answer on all local addresses. Consider `--nodeport-addresses primary`";
  }
  const lists = [config.clusterCIDRs, cidrs, config.ipvs.excludeCIDRs ?? [], podCIDRs];
  if (lists.some(isDualStack) && inPrimary === cidrs.length) {
    return `the cluster seems to be dual-stack, but nodePortAddresses has only ${own} networks: NodePorts answer on all local ${other} addresses`;
  }
  if (inPrimary === 0) {
    return `the primary family is ${own}, but nodePortAddresses has only ${other} networks: NodePorts answer on all local ${own} addresses`;
  }
  return null;
}

/** What is configured for the other family only, though this node's primary family needs it. */
export function familyWarnings(
  config: ValidConfig,
  podCIDRs: readonly Cidr[],
  primary: Family,
  dualStack: boolean,
): readonly ConfigWarning[] {
  const wrong = (items: readonly string[]) =>
    items.length > 0 && items.every((item) => isOf(item, otherOf(primary)));
  const warning = (what: string, fatal: boolean): ConfigWarning => ({
    message: `${what} has only ${names[otherOf(primary)]} entries, but the primary family of this node is ${names[primary]}`,
    fatal,
  });
  const server = (address: string) => wrong([specificHost(address)].filter((host) => host !== null));
  return [
    ...(wrong(config.clusterCIDRs)
      ? [warning("clusterCIDR", config.detectLocalMode === "ClusterCIDR" && !dualStack)]
      : []),
    ...(wrong(podCIDRs) ? [warning("podCIDRs of the Node", config.detectLocalMode === "NodeCIDR")] : []),
    ...(wrong([config.winkernel.sourceVip].filter((vip) => vip !== ""))
      ? [warning("winkernel.sourceVip", false)]
      : []),
    ...(!dualStack && wrong(config.ipvs.excludeCIDRs ?? []) ? [warning("ipvs.excludeCIDRs", false)] : []),
    ...(!dualStack && server(config.healthzBindAddress) ? [warning("healthzBindAddress", false)] : []),
    ...(!dualStack && server(config.metricsBindAddress) ? [warning("metricsBindAddress", false)] : []),
  ];
}

/** The address of a server that is bound to one; null for all addresses and for none. */
function specificHost(address: string): string | null {
  const host = parseAddress(splitHostPort(address)?.host ?? "");
  return host === "0.0.0.0" || host === "::" ? null : host;
}

function isDualStack(items: readonly string[]): boolean {
  const cidrs = items.map(parseCidr);
  if (cidrs.includes(null)) return false;
  return new Set(cidrs.map((cidr) => familyOf(cidr!))).size === 2;
}

function isOf(item: string, family: Family): boolean {
  const address = parseCidr(item) ?? parseAddress(item);
  return address !== null && familyOf(address) === family;
}

function otherOf(family: Family): Family {
  return family === "ipv4" ? "ipv6" : "ipv4";
}
