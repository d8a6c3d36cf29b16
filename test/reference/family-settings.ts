// The settings that a generated configuration means on the node of the generated clusters.
import type { FamilySettings, LocalDetector } from "../../src/config/resolve/settings.ts";
import {
  type Address,
  type Family,
  familyOf,
  hostCidr,
  isLoopback,
  networkAddress,
} from "../../src/model/address.ts";
import { nodeName } from "../places.ts";
import type { KubeObject } from "./objects.ts";
import { addressOf } from "./places.ts";
import type { Configuration } from "./proxy.ts";

/** Fields that the generator sets. */
type Fields = {
  readonly detectLocalMode: string;
  readonly clusterCIDR?: string;
  readonly detectLocal?: { readonly interfaceNamePrefix?: string; readonly bridgeInterface?: string };
  readonly featureGates?: { readonly AllowServiceExternalIPs?: boolean };
  readonly conntrack?: { readonly tcpBeLiberal: boolean };
  readonly nodePortAddresses: readonly string[];
  readonly iptables?: { masqueradeAll?: boolean; masqueradeBit?: number; localhostNodePorts?: boolean };
};

export function settingsFor(
  configuration: Configuration<string>,
  objects: readonly KubeObject[],
  family: Family,
  furtherAddresses: readonly Address[] = [],
): FamilySettings {
  const fields = configuration as unknown as Fields;
  const nodeObject = objects.find(({ kind }) => kind === "Node") as unknown as NodeFields;
  const nodeIP = addressOf("host", family);
  const cidrs = fields.nodePortAddresses
    .map((text) => (text === "primary" ? hostCidr(nodeIP) : text))
    .filter((cidr) => familyOf(cidr) === family);
  const everywhere = cidrs.length === 0 || cidrs.some((cidr) => cidr.endsWith("/0"));
  const onLoopback = everywhere || cidrs.some((cidr) => isLoopback(networkAddress(cidr)));
  const { masqueradeAll = false, masqueradeBit = 14, localhostNodePorts = true } = fields.iptables ?? {};
  return {
    family,
    nodeName,
    zone: nodeObject.metadata.labels["topology.kubernetes.io/zone"] ?? "",
    nodeIP,
    localAddresses: [family === "ipv4" ? "127.0.0.1" : "::1", nodeIP, ...furtherAddresses],
    detector: detectorOf(fields, nodeObject, family),
    masqueradeAll,
    masqueradeMark: (1 << masqueradeBit) >>> 0,
    nodePortAddresses: everywhere ? { kind: "all" } : { kind: "some", cidrs },
    localhostNodePorts: family === "ipv4" && localhostNodePorts && onLoopback,
    nftLocalhost: "pass",
    externalIPsAllowed: fields.featureGates?.AllowServiceExternalIPs ?? true,
    tcpBeLiberal: fields.conntrack?.tcpBeLiberal ?? false,
    traffic: "off",
  };
}

type NodeFields = {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: { readonly podCIDRs: readonly string[] };
};

function detectorOf(fields: Fields, nodeObject: NodeFields, family: Family): LocalDetector {
  const { interfaceNamePrefix: prefix, bridgeInterface: name } = fields.detectLocal ?? {};
  if (prefix !== undefined) return { kind: "interfacePrefix", prefix };
  if (name !== undefined) return { kind: "interface", name };
  const cidrs =
    fields.detectLocalMode === "NodeCIDR" ? nodeObject.spec.podCIDRs : fields.clusterCIDR?.split(",");
  const cidr = cidrs?.find((each) => familyOf(each) === family);
  return cidr === undefined ? { kind: "none" } : { kind: "cidr", cidr };
}
