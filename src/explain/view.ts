// What a daemon tells of the cluster for one question: the ServicePorts that can matter to it, not all it knows.
import { type Address, families } from "../model/address.ts";
import { keyed } from "../model/keyed.ts";
import {
  type ClusterNode,
  type FamilySnapshot,
  noTriggers,
  noUdpChanges,
  type ServicePort,
  type Snapshot,
} from "../model/snapshot.ts";
import type { To } from "./ask.ts";
import type { Sender } from "./resolve.ts";

type FamilyView = Pick<FamilySnapshot, "serviceCIDRs"> & { readonly ports: readonly ServicePort[] };

/** Part of a Snapshot, as JSON. */
export type View = {
  readonly ipv4: FamilyView;
  readonly ipv6: FamilyView;
  readonly node: ClusterNode | null;
};

/** Enough of a Snapshot to answer this question as the whole would. */
export function viewFor(snapshot: Snapshot, nodeIPs: readonly Address[], from: Sender, to: To): View {
  const all = families.flatMap((family) => [...snapshot[family].ports.values()]);
  const places = placesOf(all, nodeIPs, to);
  const matters = (port: ServicePort) =>
    isNamed(port, to) ||
    [port.nodePort, port.healthCheckNodePort].includes(Number(to.port)) ||
    addressesOf(port).some((address) => places.has(address)) ||
    (from.kind === "pod" && port.endpoints.some(({ address }) => address === from.address));
  const view = ({ ports, serviceCIDRs }: FamilySnapshot) => ({
    ports: [...ports.values()].filter(matters),
    serviceCIDRs,
  });
  return { ipv4: view(snapshot.ipv4), ipv6: view(snapshot.ipv6), node: snapshot.node };
}

export function snapshotOf({ ipv4, ipv6, node }: View): Snapshot {
  const family = ({ ports, serviceCIDRs }: FamilyView): FamilySnapshot => ({
    ports: keyed(ports.map((port) => [port.key, port] as const)),
    changed: new Set(),
    serviceCIDRs,
  });
  return {
    ipv4: family(ipv4),
    ipv6: family(ipv6),
    node,
    udpEndpointsChanged: noUdpChanges,
    triggeredAt: noTriggers,
    problems: [],
  };
}

/** Addresses at which the packet can arrive. */
function placesOf(all: readonly ServicePort[], nodeIPs: readonly Address[], to: To): ReadonlySet<Address> {
  switch (to.kind) {
    case "address":
      return new Set([to.address]);
    case "nodePort":
      return new Set(nodeIPs);
    case "service":
      return new Set(all.filter((port) => isNamed(port, to)).map(({ clusterIP }) => clusterIP));
  }
}

/** In any namespace: who names a wrong one is told of the others. */
function isNamed(port: ServicePort, to: To): boolean {
  return to.kind === "service" && port.name === to.name;
}

function addressesOf({ clusterIP, externalIPs, loadBalancerIPs }: ServicePort): readonly Address[] {
  return [clusterIP, ...externalIPs, ...loadBalancerIPs];
}
