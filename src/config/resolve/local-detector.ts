// How traffic of this node's pods is recognised, in one family.
import { type Cidr, type Family, familyOf, parseCidr } from "../../model/address.ts";
import type { ValidConfig } from "../config.ts";
import type { LocalDetector } from "./settings.ts";

export function localDetector(config: ValidConfig, podCIDRs: readonly Cidr[], family: Family): LocalDetector {
  switch (config.detectLocalMode) {
    case "ClusterCIDR":
      return firstOf(config.clusterCIDRs, family);
    case "NodeCIDR":
      return firstOf(podCIDRs, family);
    case "BridgeInterface":
      return { kind: "interface", name: config.detectLocal.bridgeInterface };
    case "InterfaceNamePrefix":
      return { kind: "interfacePrefix", prefix: config.detectLocal.interfaceNamePrefix };
  }
}

function firstOf(texts: readonly string[], family: Family): LocalDetector {
  const cidrs = texts.map(parseCidr).filter((cidr) => cidr !== null);
  const cidr = cidrs.find((one) => familyOf(one) === family);
  return cidr === undefined ? { kind: "none" } : { kind: "cidr", cidr };
}
