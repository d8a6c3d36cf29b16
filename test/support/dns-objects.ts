// A Node and the Service of a cluster's DNS, as objects of the API: what commands need to attribute many flows.

export const dnsObjects = [
  { kind: "Node", apiVersion: "v1", metadata: { name: "node-a" } },
  {
    kind: "Service",
    apiVersion: "v1",
    metadata: { namespace: "kube-system", name: "dns" },
    spec: {
      clusterIP: "172.30.0.10",
      clusterIPs: ["172.30.0.10"],
      ipFamilies: ["IPv4"],
      ports: [{ port: 53, protocol: "UDP", targetPort: 53 }],
    },
  },
] as const;
