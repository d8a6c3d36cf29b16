// What a daemon reports of the cluster: the ServicePorts that can matter to one question, or all of them, in chunks.
import { type Address, type Family, families } from "../model/address.ts";
import { keyed } from "../model/keyed.ts";
import type { Problem } from "../model/problem.ts";
import {
  type ClusterNode,
  type FamilySnapshot,
  noCauses,
  noTriggers,
  type ServicePort,
  type Snapshot,
} from "../model/snapshot.ts";
import { type PortJson, portFromJson, portToJson } from "./port-json.ts";
import type { To } from "./question.ts";
import type { Sender } from "./resolve.ts";

type FamilyView = Pick<FamilySnapshot, "serviceCIDRs"> & { readonly ports: readonly PortJson[] };

/** Part of a Snapshot, as JSON. */
export type View = {
  readonly ipv4: FamilyView;
  readonly ipv6: FamilyView;
  readonly node: ClusterNode | null;
  readonly problems: readonly Problem[];
};

/** Enough of a Snapshot to answer this question as the whole would. */
export function viewFor(snapshot: Snapshot, nodeIPs: readonly Address[], from: Sender, to: To): View {
  const all = families.flatMap((family) => [...snapshot[family].ports.values()]);
  const places = placesOf(all, nodeIPs, to);
  // A Service without a port in the question has none, which is not the node port 0 of most others.
  const number = to.port === null ? Number.NaN : Number(to.port);
  const matters = (port: ServicePort) =>
    isNamed(port, to) ||
    port.nodePort === number ||
    port.healthCheckNodePort === number ||
    addressesOf(port).some((address) => places.has(address)) ||
    (from.kind === "pod" &&
      port.endpoints.some(({ address }) => [from.address, from.otherAddress].includes(address)));
  const view = ({ ports, serviceCIDRs }: FamilySnapshot) => ({
    ports: [...ports.values()].filter(matters).map(portToJson),
    serviceCIDRs,
  });
  const problems = snapshot.problems.filter(({ kind }) => kind === "unreadable");
  return { ipv4: view(snapshot.ipv4), ipv6: view(snapshot.ipv6), node: snapshot.node, problems };
}

/** So many Endpoints take about the time of one ServicePort. */
const endpointsPerPort = 50;

/** All of a Snapshot in Views of so many ServicePorts, fewer if they have many Endpoints, the first of which may have none: together they are the whole. */
export function* viewsOf(snapshot: Snapshot, most: number): Generator<View> {
  const { ipv4, ipv6, node, problems } = snapshot;
  const nothing: View = {
    ipv4: { ports: [], serviceCIDRs: ipv4.serviceCIDRs },
    ipv6: { ports: [], serviceCIDRs: ipv6.serviceCIDRs },
    node,
    problems: [],
  };
  yield { ...nothing, problems };
  for (const family of families) {
    let ports: PortJson[] = [];
    let room = most;
    for (const port of snapshot[family].ports.values()) {
      ports.push(portToJson(port));
      room -= 1 + port.endpoints.length / endpointsPerPort;
      if (room > 0) continue;
      yield { ...nothing, [family]: { ...nothing[family], ports } };
      ports = [];
      room = most;
    }
    if (ports.length > 0) yield { ...nothing, [family]: { ...nothing[family], ports } };
  }
}

/** Of at least one View. */
export function snapshotOf(views: readonly View[]): Snapshot {
  const { node, ...first } = views[0]!;
  const familyOf = (family: Family): FamilySnapshot => {
    const ports = new Map<string, ServicePort>();
    for (const view of views) {
      for (const json of view[family].ports) {
        const port = portFromJson(json, family);
        ports.set(port.key, port);
      }
    }
    return { ports: keyed(ports), changed: new Set(), serviceCIDRs: first[family].serviceCIDRs };
  };
  return {
    ipv4: familyOf("ipv4"),
    ipv6: familyOf("ipv6"),
    node,
    triggeredAt: noTriggers,
    causes: noCauses,
    problems: views.flatMap(({ problems }) => problems),
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

/** In any namespace: for a wrong one, the others are suggested. */
function isNamed(port: ServicePort, to: To): boolean {
  return to.kind === "service" && port.name === to.name;
}

function addressesOf({ clusterIP, externalIPs, loadBalancerIPs }: ServicePort): readonly Address[] {
  return [clusterIP, ...externalIPs, ...loadBalancerIPs];
}
