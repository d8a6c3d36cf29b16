// Generates configurations: which senders count as local, where node ports answer, what is masqueraded.
import { nodeNetwork, podInterfacePrefix, secondNodeAddress, twin } from "../places.ts";
import { clusterCIDRs } from "./places.ts";
import type { Configuration, Mode } from "./proxy.ts";
import type { Random } from "./random.ts";

export function generateConfiguration(random: Random, mode: Mode): Configuration {
  const detector = random.one([
    { detectLocalMode: "ClusterCIDR", clusterCIDR: clusterCIDRs },
    { detectLocalMode: "ClusterCIDR", clusterCIDR: clusterCIDRs },
    { detectLocalMode: "ClusterCIDR", clusterCIDR: clusterCIDRs.split(",")[0] },
    { detectLocalMode: "ClusterCIDR" },
    { detectLocalMode: "NodeCIDR" },
    { detectLocalMode: "InterfaceNamePrefix", detectLocal: { interfaceNamePrefix: podInterfacePrefix } },
    { detectLocalMode: "BridgeInterface", detectLocal: { bridgeInterface: `${podInterfacePrefix}L2` } },
  ]);
  const nodePortAddresses = random.one([
    [],
    [],
    ["primary"],
    [nodeNetwork, twin(nodeNetwork)],
    [nodeNetwork],
    ["0.0.0.0/0", "::/0"],
    ["127.0.0.0/8", "::1/128"],
    ["127.0.0.0/8", nodeNetwork, `${secondNodeAddress}/32`],
  ]);
  const own = {
    masqueradeAll: random.chance(0.15),
    ...(random.chance(0.1) ? { masqueradeBit: random.between(0, 31) } : {}),
    ...(mode === "iptables" && random.chance(0.2) ? { localhostNodePorts: false } : {}),
  };
  const conntrack = random.chance(0.15) ? { conntrack: { tcpBeLiberal: true } } : {};
  return { mode, ...detector, nodePortAddresses, [mode]: own, ...conntrack, ...gates(random, mode) };
}

/** Those that packets feel. */
function gates(random: Random, mode: Mode): object {
  const featureGates = {
    ...(random.chance(0.08) ? { AllowServiceExternalIPs: false } : {}),
    ...(mode === "nftables" && random.chance(0.25) ? { KubeProxyNFTablesLocalhostNodePorts: true } : {}),
  };
  return Object.keys(featureGates).length > 0 ? { featureGates } : {};
}
