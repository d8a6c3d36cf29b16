// The fields and enumerated values of the kinds we read, as in Kubernetes 1.37: anything else in a file is probably a typo.
import type { Kind } from "../../manifests/objects.ts";

/** any: whatever is in it. */
export type Shape =
  | "any"
  | { readonly oneOf: readonly string[] }
  | { readonly list: Shape }
  | { readonly fields: ReadonlyMap<string, Shape> };

const fields = (shapes: Readonly<Record<string, Shape>>): Shape => ({
  fields: new Map(Object.entries(shapes)),
});
const any = (names: string): Record<string, Shape> =>
  Object.fromEntries(names.split(" ").map((name) => [name, "any"] as const));
const oneOf = (values: string): Shape => ({ oneOf: values.split(" ") });

const metadata = fields(
  any(
    "name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds labels annotations ownerReferences finalizers managedFields",
  ),
);
const common = { ...any("apiVersion kind"), metadata };

const service = fields({
  ...common,
  spec: fields({
    ...any(
      "clusterIP clusterIPs selector externalIPs externalName healthCheckNodePort loadBalancerIP loadBalancerSourceRanges loadBalancerClass publishNotReadyAddresses allocateLoadBalancerNodePorts",
    ),
    type: oneOf("ClusterIP NodePort LoadBalancer ExternalName"),
    ports: { list: fields(any("name protocol appProtocol port targetPort nodePort")) },
    sessionAffinity: oneOf("None ClientIP"),
    sessionAffinityConfig: fields({ clientIP: fields(any("timeoutSeconds")) }),
    externalTrafficPolicy: oneOf("Cluster Local"),
    internalTrafficPolicy: oneOf("Cluster Local"),
    ipFamilies: { list: oneOf("IPv4 IPv6") },
    ipFamilyPolicy: oneOf("SingleStack PreferDualStack RequireDualStack"),
    trafficDistribution: oneOf("PreferClose PreferSameZone PreferSameNode"),
  }),
  status: fields({
    ...any("conditions"),
    loadBalancer: fields({
      ingress: { list: fields({ ...any("ip hostname ports"), ipMode: oneOf("VIP Proxy") }) },
    }),
  }),
});

const endpointSlice = fields({
  ...common,
  addressType: oneOf("IPv4 IPv6 FQDN"),
  ports: { list: fields(any("name protocol port appProtocol")) },
  endpoints: {
    list: fields({
      ...any("addresses hostname targetRef deprecatedTopology nodeName zone"),
      conditions: fields(any("ready serving terminating")),
      hints: fields({ forZones: { list: fields(any("name")) }, forNodes: { list: fields(any("name")) } }),
    }),
  },
});

const node = fields({
  ...common,
  spec: fields(any("podCIDR podCIDRs providerID unschedulable taints configSource externalID")),
  status: "any",
});

const serviceCIDR = fields({ ...common, spec: fields(any("cidrs")), status: "any" });

export const shapes: Readonly<Record<Kind, Shape>> = {
  Service: service,
  EndpointSlice: endpointSlice,
  Node: node,
  ServiceCIDR: serviceCIDR,
};
