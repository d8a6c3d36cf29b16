// Kubernetes objects of scenarios: written for IPv4 in the YAML files, here completed to both families.

import { nodeName, nodePodNetwork, otherNodeName, places, serviceNetwork, twin } from "./places.ts";
import type { KubeObject } from "./reference/objects.ts";

export type { KubeObject };

type Slice = KubeObject & {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
  readonly addressType: string;
  readonly endpoints?: readonly { readonly addresses: readonly string[] }[];
};

type Service = KubeObject & {
  readonly spec: {
    readonly clusterIP?: string;
    readonly ipFamilies?: readonly string[];
    readonly externalIPs?: readonly string[];
    readonly loadBalancerSourceRanges?: readonly string[];
    readonly sessionAffinity?: string;
  };
  readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] } };
};

/**
 * The objects that one written object expands to. A Service without `ipFamilies` gets both, and each of its IPv4
 * EndpointSlices an IPv6 twin (unless it is labelled `scenario/twin: none`); a Service that names its families is
 * taken as it is.
 */
export function dualStack(object: KubeObject): KubeObject[] {
  switch (object.kind) {
    case "Service":
      return [dualStackService(object as Service)];
    case "EndpointSlice":
      return twinSlices(object as Slice);
    default:
      return [object];
  }
}

/** What every cluster of the reference set-up has besides the scenario's objects. */
export function referenceObjects(own: readonly KubeObject[]): KubeObject[] {
  return [
    node(nodeName, places.host, nodePodNetwork, "east"),
    node(otherNodeName, places.RN, "10.180.1.0/24", "west"),
    {
      apiVersion: "networking.k8s.io/v1",
      kind: "ServiceCIDR",
      metadata: { name: "kubernetes" },
      spec: { cidrs: [serviceNetwork, twin(serviceNetwork)] },
    },
  ].filter(({ kind, metadata }) => !own.some((o) => o.kind === kind && o.metadata.name === metadata.name));
}

function dualStackService(service: Service): KubeObject {
  const { spec, status } = service;
  if (spec.ipFamilies !== undefined || spec.clusterIP === undefined || spec.clusterIP === "None")
    return service;
  const ingress = status?.loadBalancer?.ingress ?? [];
  return {
    ...service,
    spec: {
      ...spec,
      ipFamilies: ["IPv4", "IPv6"],
      ipFamilyPolicy: "RequireDualStack",
      clusterIPs: [spec.clusterIP, twin(spec.clusterIP)],
      ...(spec.externalIPs && { externalIPs: withTwins(spec.externalIPs) }),
      ...(spec.loadBalancerSourceRanges && {
        loadBalancerSourceRanges: withTwins(spec.loadBalancerSourceRanges),
      }),
    },
    ...(status && {
      status: {
        loadBalancer: { ingress: ingress.flatMap((i) => (i.ip ? [i, { ...i, ip: twin(i.ip) }] : [i])) },
      },
    }),
  };
}

function twinSlices(slice: Slice): KubeObject[] {
  if (slice.addressType !== "IPv4" || slice.metadata.labels?.["scenario/twin"] === "none") return [slice];
  const endpoints = slice.endpoints?.map((e) => ({ ...e, addresses: e.addresses.map(twin) }));
  const metadata = { ...slice.metadata, name: `${slice.metadata.name}-ipv6` };
  return [slice, { ...slice, metadata, addressType: "IPv6", endpoints }];
}

function node(name: string, address: string, podCIDR: string, zone: string): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone } },
    spec: { podCIDR, podCIDRs: [podCIDR, twin(podCIDR)] },
    status: { addresses: [address, twin(address)].map((a) => ({ type: "InternalIP", address: a })) },
  };
}

function withTwins(list: readonly string[]): string[] {
  return [...list, ...list.map(twin)];
}
