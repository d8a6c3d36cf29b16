// From a scenario to Routes: what the pure oracles and our own modes need of it.
import type { FamilySettings, LocalDetector, NodePortAddresses } from "../src/config/resolve/settings.ts";
import { Cluster } from "../src/manifests/cluster.ts";
import {
  contains,
  type Family,
  familyOf,
  hostCidr,
  isLoopback,
  networkAddress,
} from "../src/model/address.ts";
import type { ClusterNode, Snapshot } from "../src/model/snapshot.ts";
import { type Routes, route } from "../src/routing/routes.ts";
import type { KubeObject } from "./cluster.ts";
import { inFamily, nodeAddresses, nodeName, places, podInterfacePrefix, podNetwork } from "./places.ts";
import type { ModeName, ScenarioSettings } from "./scenarios.ts";

export function snapshotOf(objects: readonly KubeObject[]): Snapshot {
  const cluster = new Cluster(nodeName);
  for (const object of objects) cluster.upsert(object.kind as Parameters<Cluster["upsert"]>[0], object);
  return cluster.take();
}

export function routesFor(
  objects: readonly KubeObject[],
  settings: ScenarioSettings,
  mode: ModeName,
  family: Family,
): Routes {
  const snapshot = snapshotOf(objects);
  return route(null, snapshot[family], familySettings(settings, mode, family, snapshot.node));
}

export function familySettings(
  settings: ScenarioSettings,
  mode: ModeName,
  family: Family,
  node: ClusterNode | null,
): FamilySettings {
  const nodePorts = nodePortNetworks(settings, mode, family);
  return {
    family,
    nodeName,
    zone: node?.zone ?? "",
    nodeIP: inFamily(places.host, family),
    localAddresses: nodeAddresses.map((address) => inFamily(address, family)).sort(),
    detector: detectorOf(settings, family, node),
    masqueradeAll: settings.masqueradeAll,
    masqueradeMark: 1 << 14,
    nodePortAddresses: nodePorts,
    localhostNodePorts:
      family === "ipv4" &&
      settings.localhostNodePorts &&
      (nodePorts.kind === "all" || nodePorts.cidrs.some((cidr) => isLoopback(networkAddress(cidr)))),
    nftLocalhost: nftLocalhost(settings),
    externalIPsAllowed: settings.featureGates.AllowServiceExternalIPs ?? true,
    tcpBeLiberal: false,
    traffic: "off",
  };
}

function detectorOf({ detector }: ScenarioSettings, family: Family, node: ClusterNode | null): LocalDetector {
  switch (detector) {
    case "clusterCIDR":
      return { kind: "cidr", cidr: inFamily(podNetwork, family) };
    case "nodeCIDR": {
      const cidr = node?.podCIDRs.find((podCIDR) => familyOf(podCIDR) === family);
      return cidr === undefined ? { kind: "none" } : { kind: "cidr", cidr };
    }
    case "interfacePrefix":
      return { kind: "interfacePrefix", prefix: podInterfacePrefix };
    case "none":
      return { kind: "none" };
  }
}

/** An empty list means the node's first address in nftables mode, and every address elsewhere. */
function nodePortNetworks(
  { nodePortAddresses }: ScenarioSettings,
  mode: ModeName,
  family: Family,
): NodePortAddresses {
  const words = nodePortAddresses.length === 0 && mode === "nftables" ? ["primary"] : nodePortAddresses;
  const cidrs = words.map((word) => {
    if (word === "primary") return hostCidr(inFamily(places.host, family));
    return inFamily(word === "localhost" ? "127.0.0.0/8" : word, family);
  });
  const all = cidrs.length === 0 || cidrs.some((cidr) => cidr.endsWith("/0"));
  return all ? { kind: "all" } : { kind: "some", cidrs };
}

function nftLocalhost({ featureGates, nodePortAddresses }: ScenarioSettings): FamilySettings["nftLocalhost"] {
  if (!featureGates.KubeProxyNFTablesLocalhostNodePorts) return "pass";
  const explicit = nodePortAddresses.some(
    (word) => word === "localhost" || (word.includes("/") && contains("127.0.0.0/8", networkAddress(word))),
  );
  return explicit ? "serve" : "reject";
}
