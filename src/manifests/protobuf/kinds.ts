// The protobuf field numbers of what we read of each kind.
import { type Kind, type Shape, shapes } from "../objects.ts";
import { type Message, messageOf } from "./table.ts";

/** Not kept from JSON, where the API client reads it before the rest is dropped. */
const version = { resourceVersion: "own" } as const;

const named = { name: 1, namespace: 3, resourceVersion: 6 };

export const objectMessages: Readonly<Record<Kind, Message>> = {
  Service: messageOf(withMetadata(shapes.Service, version), {
    metadata: [1, { ...named, labels: { keyed: 11 } }],
    spec: [
      2,
      {
        type: 4,
        clusterIP: 3,
        clusterIPs: 18,
        ipFamilies: 19,
        ports: [1, { name: 1, protocol: 2, port: { int: 3 }, nodePort: { int: 5 } }],
        externalIPs: 5,
        loadBalancerSourceRanges: 9,
        sessionAffinity: 7,
        sessionAffinityConfig: [14, { clientIP: [1, { timeoutSeconds: { int: 1 } }] }],
        internalTrafficPolicy: 22,
        externalTrafficPolicy: 11,
        healthCheckNodePort: { int: 12 },
      },
    ],
    status: [3, { loadBalancer: [1, { ingress: [1, { ip: 1, ipMode: 3 }] }] }],
  }),
  EndpointSlice: messageOf(withMetadata(shapes.EndpointSlice, version), {
    metadata: [1, { ...named, labels: { keyed: 11 }, annotations: { keyed: 12 } }],
    addressType: 4,
    ports: [3, { name: 1, protocol: 2, port: { int: 3 } }, "repeats"],
    endpoints: [
      2,
      {
        addresses: 1,
        conditions: [2, { ready: { flag: 1 }, serving: { flag: 2 }, terminating: { flag: 3 } }, "repeats"],
        nodeName: 6,
        hints: [8, { forZones: [1, { name: 1 }], forNodes: [2, { name: 1 }] }, "repeats"],
        targetRef: [4, { kind: 1, name: 3 }],
      },
    ],
  }),
  Node: messageOf(withMetadata(shapes.Node, { ...version, uid: "own" } as const), {
    metadata: [1, { ...named, uid: 5, labels: { keyed: 11 }, deletionTimestamp: { time: 9 } }],
    spec: [2, { podCIDRs: 7, taints: [5, { key: 1 }] }],
    status: [3, { addresses: [5, { type: 1, address: 2 }] }],
  }),
  ServiceCIDR: messageOf(withMetadata(shapes.ServiceCIDR, version), {
    metadata: [1, named],
    spec: [2, { cidrs: 1 }],
  }),
};

/** What identifies an object of any kind, for messages about one that cannot be decoded. */
export const identityMessage = messageOf(
  { metadata: { name: "own", namespace: "own" } },
  {
    metadata: [1, { name: 1, namespace: 3 }],
  },
);

function withMetadata<S extends { readonly metadata: object }, M extends { readonly [field: string]: Shape }>(
  shape: S,
  more: M,
): S & { readonly metadata: M } {
  return { ...shape, metadata: { ...shape.metadata, ...more } };
}
