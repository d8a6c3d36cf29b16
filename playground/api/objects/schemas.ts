// The fields of every kind this API serves, and what they mean here.
import {
  anything,
  type Field,
  flag,
  ignored,
  integer,
  integerOrText,
  map,
  object,
  objects,
  required,
  text,
  texts,
} from "./fields.ts";

const noContainers = "Taken and passed over: pods of the playground are small servers without containers.";

const metadata = object("Who it is.", {
  name: text("Its name, unique among its kind in its namespace."),
  namespace: text("The namespace it is in."),
  labels: map("What selectors find it by."),
  annotations: map("Notes that nothing is selected by."),
  generateName: text("Beginning of a name that the server completes."),
  ...ignored(
    "uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds finalizers managedFields ownerReferences selfLink",
    "Filled in by the server.",
  ),
});

const listMetadata = { apiVersion: text("The version of its kind."), kind: text("Its kind."), metadata };

const status = anything("How it is; written by the server.");

const selector = object("Finds Pods by their labels.", {
  matchLabels: map("Labels that a Pod must have."),
  matchExpressions: objects("Not used here: say matchLabels.", {
    key: text("A label."),
    operator: text("In, NotIn, Exists or DoesNotExist."),
    values: texts("Its values."),
  }),
});

const podSpec = object("Where it runs, and what it listens on.", {
  nodeName: text("The node it is on; without it, one is chosen."),
  nodeSelector: map("Labels of the nodes it may be on."),
  tolerations: objects("Taints of nodes that do not keep it away.", {
    key: text("The key of the taint; empty: every key."),
    operator: text("Whether the value counts.", "Equal", "Exists"),
    value: text("The value of the taint."),
    effect: text(
      "The effect of the taint; empty: every effect.",
      "NoSchedule",
      "PreferNoSchedule",
      "NoExecute",
    ),
    tolerationSeconds: integer("Passed over."),
  }),
  terminationGracePeriodSeconds: integer("How long it serves on after it was told to end (5)."),
  containers: objects("Their ports count: an echo server listens on each. Without any, on 8080.", {
    name: required(text("Its name.")),
    image: text("Passed over: every container is the same echo server."),
    ports: objects("What it listens on.", {
      name: text("A name that the targetPort of a Service may say."),
      containerPort: required(integer("The port.")),
      protocol: text("TCP (default) or UDP.", "TCP", "UDP", "SCTP"),
      ...ignored("hostPort hostIP", noContainers),
    }),
    ...ignored(
      "args command env envFrom imagePullPolicy lifecycle livenessProbe readinessProbe resizePolicy resources restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir",
      noContainers,
    ),
  }),
  ...ignored(
    "activeDeadlineSeconds affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets initContainers os overhead preemptionPolicy priority priorityClassName readinessGates resourceClaims resources restartPolicy runtimeClassName schedulerName schedulingGates securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain topologySpreadConstraints volumes workloadRef",
    noContainers,
  ),
});

const podTemplate = object("What its Pods look like.", { metadata, spec: podSpec });

const endpointPort = {
  name: text("The name of the Service's port it belongs to."),
  port: integer("The port."),
  protocol: text("TCP (default), UDP or SCTP.", "TCP", "UDP", "SCTP"),
  appProtocol: text("What is spoken there; nothing here depends on it."),
};

const reference = {
  ...ignored("apiVersion kind name namespace uid resourceVersion fieldPath", "Part of the reference."),
};

const clientIP = object("Of sessionAffinity ClientIP.", {
  timeoutSeconds: integer("How long a client that says nothing is remembered (10800)."),
});

const servicePort = {
  name: text("Needed when there are several ports."),
  port: required(integer("Where the Service listens.")),
  protocol: text("TCP (default), UDP or SCTP.", "TCP", "UDP", "SCTP"),
  targetPort: integerOrText("The port of its Pods, a number or a container port's name (as port)."),
  nodePort: integer("The port of every node, 30000-32767; one is chosen for NodePort and LoadBalancer."),
  appProtocol: text("What is spoken there; nothing here depends on it."),
};

const serviceSpec = object("What it offers, to whom, and who answers.", {
  type: text(
    "Where it can be reached: inside (default), at a port of every node, at a load balancer, or it is a name only.",
    "ClusterIP",
    "NodePort",
    "LoadBalancer",
    "ExternalName",
  ),
  selector: map("Labels of the Pods that answer. Without it, write EndpointSlices yourself."),
  ports: objects("Where it listens.", servicePort),
  clusterIP: text("Its address inside; one is chosen. None: it has none, and nothing is proxied."),
  clusterIPs: texts("One address for each family."),
  ipFamilies: texts("IPv4, IPv6 or both."),
  ipFamilyPolicy: text("One family or two.", "SingleStack", "PreferDualStack", "RequireDualStack"),
  externalIPs: texts("Further addresses it answers at, when packets for them reach a node."),
  externalName: text("Of type ExternalName: the name it stands for."),
  externalTrafficPolicy: text(
    "From outside: any Pod (Cluster), or only those of the node that was called, which then see the caller.",
    "Cluster",
    "Local",
  ),
  internalTrafficPolicy: text(
    "From inside: any Pod, or only those of the caller's node.",
    "Cluster",
    "Local",
  ),
  trafficDistribution: text(
    "Whom to prefer: Pods of the same zone or node.",
    "PreferClose",
    "PreferSameZone",
    "PreferSameNode",
  ),
  sessionAffinity: text("Whether a client stays with one Pod.", "None", "ClientIP"),
  sessionAffinityConfig: object("For how long.", { clientIP }),
  loadBalancerIP: text("The address of the load balancer; one of 198.51.100.0/24 reaches a node here."),
  loadBalancerSourceRanges: texts("Networks that may call the load balancer; without it, all."),
  loadBalancerClass: text("Who makes the load balancer; here it is always the same."),
  allocateLoadBalancerNodePorts: flag("Whether a load balancer also has node ports (true)."),
  healthCheckNodePort: integer("Where a node tells a load balancer whether it has a Pod of this Service."),
  publishNotReadyAddresses: flag("Whether Pods answer before they are ready."),
});

const replicas = integer("How many Pods there should be (1).");

const event = {
  ...listMetadata,
  ...ignored(
    "type reason action count series source involvedObject related regarding note message eventTime firstTimestamp lastTimestamp reportingComponent reportingController reportingInstance deprecatedCount deprecatedFirstTimestamp deprecatedLastTimestamp deprecatedSource",
    "What happened, to whom and when.",
  ),
};

/** By kind. */
export const schemas: Readonly<Record<string, Field>> = {
  Service: object("One name and address for several Pods.", { ...listMetadata, spec: serviceSpec, status }),
  Pod: object("A small server in a network namespace of its own: it says who it is and whom it saw.", {
    ...listMetadata,
    spec: podSpec,
    status,
  }),
  Deployment: object("So many Pods, always.", {
    ...listMetadata,
    spec: object("How many, and what they look like.", {
      replicas,
      selector: required(selector),
      template: required(podTemplate),
      paused: flag("Must be false: rollouts are not paused here."),
      ...ignored(
        "minReadySeconds progressDeadlineSeconds revisionHistoryLimit strategy",
        "Taken and passed over.",
      ),
    }),
    status,
  }),
  EndpointSlice: object("Who answers for a Service: the label kubernetes.io/service-name names it.", {
    ...listMetadata,
    addressType: required(text("The family of its addresses.", "IPv4", "IPv6", "FQDN")),
    ports: objects("The ports of all its endpoints.", endpointPort),
    endpoints: objects("Who answers.", {
      addresses: required(texts("Its address.")),
      conditions: object("How it is.", {
        ready: flag("Takes new connections (true)."),
        serving: flag("Answers, perhaps while it ends."),
        terminating: flag("Ends."),
      }),
      hostname: text("Its name."),
      nodeName: text("The node it is on."),
      zone: text("The zone it is in."),
      targetRef: object("The Pod behind it.", reference),
      hints: object("For whom it is best.", {
        forZones: objects("Zones.", { name: text("A zone.") }),
        forNodes: objects("Nodes.", { name: text("A node.") }),
      }),
      deprecatedTopology: map("Passed over."),
    }),
  }),
  Endpoints: object("Who answers for a Service, as it was told before there were EndpointSlices.", {
    ...listMetadata,
    subsets: objects("Addresses with the same ports.", {
      ...ignored("addresses notReadyAddresses ports", "Made from EndpointSlices."),
    }),
  }),
  Node: object("A network namespace with a proxy and the Pods on it.", {
    ...listMetadata,
    spec: object("What it takes.", {
      podCIDR: text("The network of its Pods."),
      podCIDRs: texts("The networks of its Pods, one for each family."),
      unschedulable: flag("Whether it takes no new Pods."),
      taints: objects("Keep Pods away that do not tolerate them.", {
        key: required(text("A name.")),
        value: text("A value."),
        effect: required(text("What it does.", "NoSchedule", "PreferNoSchedule", "NoExecute")),
        timeAdded: text("Passed over."),
      }),
      ...ignored("configSource externalID providerID", "Taken and passed over."),
    }),
    status,
  }),
  Namespace: object("A folder for names; what is in it goes with it.", {
    ...listMetadata,
    spec: object("How it ends.", { finalizers: texts("Passed over.") }),
    status,
  }),
  ServiceCIDR: object("Where cluster IPs come from.", {
    ...listMetadata,
    spec: object("The networks.", { cidrs: texts("One for each family.") }),
    status,
  }),
  Event: object("Something that happened.", event),
};
