// The KubeProxyConfiguration that puts a scenario's settings into effect.
import { inFamily, podInterfacePrefix, podNetwork, twin } from "../places.ts";
import type { Configuration, Mode } from "../reference/proxy.ts";
import type { ScenarioSettings } from "../scenarios.ts";

export function configurationFor(
  mode: Mode | "ipvs",
  settings: ScenarioSettings,
): Configuration<Mode | "ipvs"> {
  return {
    mode,
    ...detection(settings),
    iptables: { masqueradeAll: settings.masqueradeAll, localhostNodePorts: settings.localhostNodePorts },
    nftables: { masqueradeAll: settings.masqueradeAll },
    nodePortAddresses: settings.nodePortAddresses.flatMap((entry) =>
      entry.includes("/") ? [entry, inFamily(entry, "ipv6")] : [entry],
    ),
    featureGates: settings.featureGates,
  };
}

function detection({ detector }: ScenarioSettings): Record<string, unknown> {
  switch (detector) {
    case "clusterCIDR":
      return { detectLocalMode: "ClusterCIDR", clusterCIDR: `${podNetwork},${twin(podNetwork)}` };
    case "nodeCIDR":
      return { detectLocalMode: "NodeCIDR" };
    case "interfacePrefix":
      return {
        detectLocalMode: "InterfaceNamePrefix",
        detectLocal: { interfaceNamePrefix: podInterfacePrefix },
      };
    case "none":
      return { detectLocalMode: "ClusterCIDR", clusterCIDR: "" };
  }
}
