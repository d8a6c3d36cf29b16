// Clusters of a given size as Kubernetes objects: S Services with E endpoints each.
import type { KubeObject } from "../../test/reference/objects.ts";

export type Size = { readonly services: number; readonly endpoints: number };

export function sizeText({ services, endpoints }: Size): string {
  return `${services.toLocaleString("en")} × ${endpoints}`;
}

export const nodeName = "node-a";

export function clusterOf({ services, endpoints }: Size): readonly KubeObject[] {
  return [
    nodeObject,
    ...Array.from({ length: services }, (_, i) => [serviceObject(i), sliceObject(i, endpoints)]).flat(),
  ];
}

export function serviceAddress(i: number): string {
  return `172.${16 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`;
}

/** Address of an endpoint; `generation` moves the Service to other pods. */
export function endpointAddress(i: number, endpoint: number, generation = 0): string {
  const n = i * 16 + endpoint;
  return `10.${(n >> 16) + 64 * generation}.${(n >> 8) & 255}.${n & 255}`;
}

const nodeObject: KubeObject = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: nodeName },
  spec: { podCIDR: "10.0.0.0/24", podCIDRs: ["10.0.0.0/24"] },
  status: {
    addresses: [
      { type: "InternalIP", address: "192.168.0.2" },
      { type: "InternalIP", address: "2001:db8::2" },
    ],
  },
};

export function serviceObject(i: number): KubeObject {
  const clusterIP = serviceAddress(i);
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: `service-${i}`, namespace: `ns-${i % 50}` },
    spec: {
      type: "ClusterIP",
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: ["IPv4"],
      ipFamilyPolicy: "SingleStack",
      internalTrafficPolicy: "Cluster",
      sessionAffinity: "None",
      ports: [{ name: "http", protocol: "TCP", port: 80, targetPort: 8080 }],
    },
    status: { loadBalancer: {} },
  };
}

export function sliceObject(i: number, endpoints: number, generation = 0): KubeObject {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: `service-${i}-x`,
      namespace: `ns-${i % 50}`,
      labels: { "kubernetes.io/service-name": `service-${i}` },
    },
    addressType: "IPv4",
    ports: [{ name: "http", protocol: "TCP", port: 8080 }],
    endpoints: Array.from({ length: endpoints }, (_, e) => ({
      addresses: [endpointAddress(i, e, generation)],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: `node-${e % 20}`,
    })),
  };
}
