// Protobuf field numbers of the kinds that kubectl sends as protobuf.

/** By number. */
export type Message = { readonly [number: number]: Field };

/** Name, type and shape of a field. */
export type Field = readonly [name: string, kind: Kind, shape?: "list" | "map"];

export type Kind = "text" | "bytes" | "number" | "flag" | "numberOrText" | Message;

const metadata: Message = {
  1: ["name", "text"],
  2: ["generateName", "text"],
  3: ["namespace", "text"],
  5: ["uid", "text"],
  6: ["resourceVersion", "text"],
  11: ["labels", "text", "map"],
  12: ["annotations", "text", "map"],
  14: ["finalizers", "text", "list"],
};

const servicePort: Message = {
  1: ["name", "text"],
  2: ["protocol", "text"],
  3: ["port", "number"],
  4: ["targetPort", "numberOrText"],
  5: ["nodePort", "number"],
  6: ["appProtocol", "text"],
};

const serviceSpec: Message = {
  1: ["ports", servicePort, "list"],
  2: ["selector", "text", "map"],
  3: ["clusterIP", "text"],
  4: ["type", "text"],
  5: ["externalIPs", "text", "list"],
  7: ["sessionAffinity", "text"],
  8: ["loadBalancerIP", "text"],
  9: ["loadBalancerSourceRanges", "text", "list"],
  10: ["externalName", "text"],
  11: ["externalTrafficPolicy", "text"],
  12: ["healthCheckNodePort", "number"],
  13: ["publishNotReadyAddresses", "flag"],
  14: ["sessionAffinityConfig", { 1: ["clientIP", { 1: ["timeoutSeconds", "number"] }] }],
  17: ["ipFamilyPolicy", "text"],
  18: ["clusterIPs", "text", "list"],
  19: ["ipFamilies", "text", "list"],
  20: ["allocateLoadBalancerNodePorts", "flag"],
  21: ["loadBalancerClass", "text"],
  22: ["internalTrafficPolicy", "text"],
  23: ["trafficDistribution", "text"],
};

const container: Message = {
  1: ["name", "text"],
  2: ["image", "text"],
  3: ["command", "text", "list"],
  4: ["args", "text", "list"],
  6: [
    "ports",
    {
      1: ["name", "text"],
      2: ["hostPort", "number"],
      3: ["containerPort", "number"],
      4: ["protocol", "text"],
    },
    "list",
  ],
  7: ["env", { 1: ["name", "text"], 2: ["value", "text"] }, "list"],
};

const podSpec: Message = {
  2: ["containers", container, "list"],
  3: ["restartPolicy", "text"],
  4: ["terminationGracePeriodSeconds", "number"],
  7: ["nodeSelector", "text", "map"],
  10: ["nodeName", "text"],
};

const deploymentSpec: Message = {
  1: ["replicas", "number"],
  2: ["selector", { 1: ["matchLabels", "text", "map"] }],
  3: ["template", { 1: ["metadata", metadata], 2: ["spec", podSpec] }],
};

const deleteOptions: Message = {
  1: ["gracePeriodSeconds", "number"],
  2: ["preconditions", { 1: ["uid", "text"] }],
  5: ["dryRun", "text", "list"],
};

export const kinds: Readonly<Record<string, Message>> = {
  Service: { 1: ["metadata", metadata], 2: ["spec", serviceSpec] },
  Deployment: { 1: ["metadata", metadata], 2: ["spec", deploymentSpec] },
  Pod: { 1: ["metadata", metadata], 2: ["spec", podSpec] },
  Namespace: { 1: ["metadata", metadata] },
  DeleteOptions: deleteOptions,
};
