// The objects of every playground: Nodes, the default namespace and the ServiceCIDR. Pure.
import { nodePlaces, serviceCIDRs } from "../net/layout.ts";
import type { Manifest } from "./example.ts";

/** What the nodes share. */
export type Machine = {
  readonly kernel: string;
  readonly architecture: string;
  readonly cpus: number;
  readonly memoryBytes: number;
};

/** `now`: when the nodes became ready. */
export function foundation(now: Date, machine: Machine): Manifest[] {
  const room = {
    cpu: String(machine.cpus),
    memory: `${Math.floor(machine.memoryBytes / 1024)}Ki`,
    pods: "100",
  };
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
        capacity: room,
        allocatable: room,
        conditions: [
          {
            type: "Ready",
            status: "True",
            reason: "NamespaceCreated",
            message: "the network namespace exists",
            lastHeartbeatTime: since,
            lastTransitionTime: since,
          },
        ],
        nodeInfo: {
          kubeletVersion: "playground",
          kernelVersion: machine.kernel,
          architecture: machine.architecture,
          osImage: "a network namespace of this machine",
          operatingSystem: "linux",
          containerRuntimeVersion: "none",
        },
      },
    })),
  ];
}
