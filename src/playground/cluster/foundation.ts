// The objects every playground has: its Nodes, and the network of its Services. Pure.
import { nodePlaces, serviceCIDRs } from "../net/layout.ts";
import type { Manifest } from "./example.ts";

/** `now`: when the nodes became ready; `kernel`: the one they all share. */
export function foundation(now: Date, kernel: string): Manifest[] {
  const since = now.toISOString().replace(/\.\d+Z$/, "Z");
  return [
    { kind: "Namespace", metadata: { name: "default" }, status: { phase: "Active" } },
    {
      kind: "ServiceCIDR",
      metadata: { name: "kubernetes" },
      spec: { cidrs: [serviceCIDRs.ipv4, serviceCIDRs.ipv6] },
    },
    ...nodePlaces.map(({ name, zone, addresses, podCIDRs }) => ({
      kind: "Node",
      metadata: { name, labels: { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone } },
      spec: { podCIDR: podCIDRs.ipv4, podCIDRs: [podCIDRs.ipv4, podCIDRs.ipv6] },
      status: {
        addresses: [
          { type: "InternalIP", address: addresses.ipv4 },
          { type: "InternalIP", address: addresses.ipv6 },
          { type: "Hostname", address: name },
        ],
        conditions: [
          {
            type: "Ready",
            status: "True",
            reason: "NamespaceMade",
            message: "its network namespace is there",
            lastHeartbeatTime: since,
            lastTransitionTime: since,
          },
        ],
        nodeInfo: {
          kubeletVersion: "playground",
          kernelVersion: kernel,
          osImage: "a network namespace of this machine",
          operatingSystem: "linux",
          containerRuntimeVersion: "none",
        },
      },
    })),
  ];
}
