// Protobuf field numbers of the kinds that the tests serve, including fields that Turnout does not read.

/** By name: the number, and the type of one value; lists and maps follow from the value. */
export type Table = { readonly [field: string]: readonly [number: number, type: Type] };

export type Type = "text" | "int" | "flag" | "time" | "map" | "intOrText" | "ignored" | Table;

export const metadata: Table = {
  name: [1, "text"],
  generateName: [2, "text"],
  namespace: [3, "text"],
  uid: [5, "text"],
  resourceVersion: [6, "text"],
  generation: [7, "int"],
  creationTimestamp: [8, "time"],
  deletionTimestamp: [9, "time"],
  deletionGracePeriodSeconds: [10, "int"],
  labels: [11, "map"],
  annotations: [12, "map"],
  finalizers: [14, "text"],
  // Large, and never read.
  ownerReferences: [13, "ignored"],
  managedFields: [17, "ignored"],
};

const listMetadata: Table = {
  resourceVersion: [2, "text"],
  continue: [3, "text"],
  remainingItemCount: [4, "int"],
};

const condition: Table = {
  type: [1, "text"],
  status: [2, "text"],
  observedGeneration: [3, "int"],
  lastTransitionTime: [4, "time"],
  reason: [5, "text"],
  message: [6, "text"],
};

const service: Table = {
  metadata: [1, metadata],
  spec: [
    2,
    {
      ports: [
        1,
        {
          name: [1, "text"],
          protocol: [2, "text"],
          port: [3, "int"],
          targetPort: [4, "intOrText"],
          nodePort: [5, "int"],
          appProtocol: [6, "text"],
        },
      ],
      selector: [2, "map"],
      clusterIP: [3, "text"],
      type: [4, "text"],
      externalIPs: [5, "text"],
      sessionAffinity: [7, "text"],
      loadBalancerIP: [8, "text"],
      loadBalancerSourceRanges: [9, "text"],
      externalName: [10, "text"],
      externalTrafficPolicy: [11, "text"],
      healthCheckNodePort: [12, "int"],
      publishNotReadyAddresses: [13, "flag"],
      sessionAffinityConfig: [14, { clientIP: [1, { timeoutSeconds: [1, "int"] }] }],
      ipFamilyPolicy: [17, "text"],
      clusterIPs: [18, "text"],
      ipFamilies: [19, "text"],
      allocateLoadBalancerNodePorts: [20, "flag"],
      loadBalancerClass: [21, "text"],
      internalTrafficPolicy: [22, "text"],
      trafficDistribution: [23, "text"],
    },
  ],
  status: [
    3,
    {
      loadBalancer: [1, { ingress: [1, { ip: [1, "text"], hostname: [2, "text"], ipMode: [3, "text"] }] }],
      conditions: [2, condition],
    },
  ],
};

const reference: Table = {
  kind: [1, "text"],
  namespace: [2, "text"],
  name: [3, "text"],
  uid: [4, "text"],
  apiVersion: [5, "text"],
  resourceVersion: [6, "text"],
};

const endpointSlice: Table = {
  metadata: [1, metadata],
  endpoints: [
    2,
    {
      addresses: [1, "text"],
      conditions: [2, { ready: [1, "flag"], serving: [2, "flag"], terminating: [3, "flag"] }],
      hostname: [3, "text"],
      targetRef: [4, reference],
      deprecatedTopology: [5, "map"],
      nodeName: [6, "text"],
      zone: [7, "text"],
      hints: [8, { forZones: [1, { name: [1, "text"] }], forNodes: [2, { name: [1, "text"] }] }],
    },
  ],
  ports: [3, { name: [1, "text"], protocol: [2, "text"], port: [3, "int"], appProtocol: [4, "text"] }],
  addressType: [4, "text"],
};

const node: Table = {
  metadata: [1, metadata],
  spec: [
    2,
    {
      podCIDR: [1, "text"],
      providerID: [3, "text"],
      unschedulable: [4, "flag"],
      taints: [5, { key: [1, "text"], value: [2, "text"], effect: [3, "text"], timeAdded: [4, "time"] }],
      podCIDRs: [7, "text"],
    },
  ],
  status: [
    3,
    {
      capacity: [1, "ignored"],
      allocatable: [2, "ignored"],
      conditions: [4, "ignored"],
      addresses: [5, { type: [1, "text"], address: [2, "text"] }],
      daemonEndpoints: [6, "ignored"],
      nodeInfo: [7, "ignored"],
    },
  ],
};

const serviceCIDR: Table = {
  metadata: [1, metadata],
  spec: [2, { cidrs: [1, "text"] }],
  status: [3, { conditions: [1, condition] }],
};

const status: Table = {
  metadata: [1, listMetadata],
  status: [2, "text"],
  message: [3, "text"],
  reason: [4, "text"],
  details: [
    5,
    {
      name: [1, "text"],
      group: [2, "text"],
      kind: [3, "text"],
      causes: [4, { reason: [1, "text"], message: [2, "text"], field: [3, "text"] }],
      retryAfterSeconds: [5, "int"],
      uid: [6, "text"],
    },
  ],
  code: [6, "int"],
};

const kinds = {
  Service: service,
  EndpointSlice: endpointSlice,
  Node: node,
  ServiceCIDR: serviceCIDR,
} as const;

const lists = Object.entries(kinds).map(([kind, item]): [string, Table] => [
  `${kind}List`,
  { metadata: [1, listMetadata], items: [2, item] },
]);

/** By kind; undefined: the tests serve it only as JSON. */
export const tables: ReadonlyMap<string, Table> = new Map<string, Table>([
  ...Object.entries(kinds),
  ...lists,
  ["Status", status],
]);
