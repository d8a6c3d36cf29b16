// The fields of every kind this API serves, with descriptions for `kubectl explain`.
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

const noContainers = "Accepted and ignored: playground pods are echo servers without containers.";

const metadata = object("Name and labels.", {
  name: text("Name, unique within kind and namespace."),
  namespace: text("Namespace of the object."),
  labels: map("Labels that selectors match."),
  annotations: map("Data that selectors ignore."),
  generateName: text("Prefix of a generated name."),
  ...ignored(
    "uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds finalizers managedFields ownerReferences selfLink",
    "Set by the server.",
  ),
});

const listMetadata = { apiVersion: text("The version of its kind."), kind: text("Its kind."), metadata };

const status = anything("Current state, set by the server.");

const selector = object("Selects Pods by labels.", {
  matchLabels: map("Labels that a Pod must have."),
  matchExpressions: objects("Not supported: use matchLabels.", {
    key: text("A label."),
    operator: text("In, NotIn, Exists or DoesNotExist."),
    values: texts("Its values."),
  }),
});

const podSpec = object("Scheduling and container ports.", {
  nodeName: text("The node of the Pod; chosen by the server when empty."),
  nodeSelector: map("Labels that the node must have."),
  tolerations: objects("Node taints that the Pod tolerates.", {
    key: text("Key of the taint; empty matches all keys."),
    operator: text("Equal compares the value, Exists does not.", "Equal", "Exists"),
    value: text("The value of the taint."),
    effect: text(
      "Effect of the taint; empty matches all effects.",
      "NoSchedule",
      "PreferNoSchedule",
      "NoExecute",
    ),
    tolerationSeconds: integer("Ignored."),
  }),
  terminationGracePeriodSeconds: integer("How many seconds a terminating Pod keeps serving (default 5)."),
  containers: objects("An echo server listens on each container port; without ports, on 8080.", {
    name: required(text("Its name.")),
    image: text("Ignored: every container is the same echo server."),
    ports: objects("Ports of the echo server.", {
      name: text("Name that the targetPort of a Service can refer to."),
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

const podTemplate = object("Template of the Pods.", { metadata, spec: podSpec });

const endpointPort = {
  name: text("Name of the Service port."),
  port: integer("The port."),
  protocol: text("TCP (default), UDP or SCTP.", "TCP", "UDP", "SCTP"),
  appProtocol: text("Application protocol; informational."),
};

const reference = {
  ...ignored("apiVersion kind name namespace uid resourceVersion fieldPath", "Part of the reference."),
};

const clientIP = object("Settings of sessionAffinity ClientIP.", {
  timeoutSeconds: integer("Idle time after which the affinity ends (default 10800)."),
});

const servicePort = {
  name: text("Required when there are several ports."),
  port: required(integer("Port of the Service.")),
  protocol: text("TCP (default), UDP or SCTP.", "TCP", "UDP", "SCTP"),
  targetPort: integerOrText("Port of the Pods: a number or the name of a container port (default: port)."),
  nodePort: integer("Port on every node, 30000-32767; allocated for NodePort and LoadBalancer when empty."),
  appProtocol: text("Application protocol; informational."),
};

const serviceSpec = object("Addresses, ports, selector and policies.", {
  type: text(
    "How the Service is exposed: in the cluster (default), on a node port, by a load balancer, or as a DNS name.",
    "ClusterIP",
    "NodePort",
    "LoadBalancer",
    "ExternalName",
  ),
  selector: map("Labels of the backend Pods. Without a selector, create EndpointSlices yourself."),
  ports: objects("Ports of the Service.", servicePort),
  clusterIP: text("Cluster IP; allocated when empty. None: headless, not proxied."),
  clusterIPs: texts("One cluster IP per IP family."),
  ipFamilies: texts("IPv4, IPv6 or both."),
  ipFamilyPolicy: text("One family or two.", "SingleStack", "PreferDualStack", "RequireDualStack"),
  externalIPs: texts("Additional addresses, for packets that are routed to a node."),
  externalName: text("DNS name of a Service of type ExternalName."),
  externalTrafficPolicy: text(
    "External traffic: all Pods (Cluster), or only Pods on the receiving node, which see the client address (Local).",
    "Cluster",
    "Local",
  ),
  internalTrafficPolicy: text(
    "Internal traffic: all Pods (Cluster), or only Pods on the node of the client (Local).",
    "Cluster",
    "Local",
  ),
  trafficDistribution: text(
    "Preferred Pods: same zone or same node.",
    "PreferClose",
    "PreferSameZone",
    "PreferSameNode",
  ),
  sessionAffinity: text("ClientIP sends all connections of a client to one Pod.", "None", "ClientIP"),
  sessionAffinityConfig: object("Settings of the session affinity.", { clientIP }),
  loadBalancerIP: text("Address of the load balancer; addresses in 198.51.100.0/24 are routed to a node."),
  loadBalancerSourceRanges: texts("Client networks that the load balancer accepts; empty accepts all."),
  loadBalancerClass: text("Load balancer implementation; ignored."),
  allocateLoadBalancerNodePorts: flag("Whether to allocate node ports for a load balancer (default true)."),
  healthCheckNodePort: integer(
    "Port of the health check that reports whether a node has Pods of the Service.",
  ),
  publishNotReadyAddresses: flag("Whether Pods that are not ready get traffic."),
});

const replicas = integer("Number of Pods (default 1).");

const event = {
  ...listMetadata,
  ...ignored(
    "type reason action count series source involvedObject related regarding note message eventTime firstTimestamp lastTimestamp reportingComponent reportingController reportingInstance deprecatedCount deprecatedFirstTimestamp deprecatedLastTimestamp deprecatedSource",
    "Details of the event.",
  ),
};

/** By kind. */
export const schemas: Readonly<Record<string, Field>> = {
  Service: object("A stable name and address for a set of Pods.", {
    ...listMetadata,
    spec: serviceSpec,
    status,
  }),
  Pod: object("An echo server in its own network namespace; it returns its name and the client address.", {
    ...listMetadata,
    spec: podSpec,
    status,
  }),
  Deployment: object("Keeps a number of Pods running.", {
    ...listMetadata,
    spec: object("Number and template of the Pods.", {
      replicas,
      selector: required(selector),
      template: required(podTemplate),
      paused: flag("Must be false: pausing rollouts is not supported."),
      ...ignored(
        "minReadySeconds progressDeadlineSeconds revisionHistoryLimit strategy",
        "Accepted and ignored.",
      ),
    }),
    status,
  }),
  EndpointSlice: object("Endpoints of the Service that the label kubernetes.io/service-name names.", {
    ...listMetadata,
    addressType: required(text("Type of the addresses.", "IPv4", "IPv6", "FQDN")),
    ports: objects("Ports of all endpoints.", endpointPort),
    endpoints: objects("Endpoints.", {
      addresses: required(texts("Address of the endpoint.")),
      conditions: object("State of the endpoint.", {
        ready: flag("Accepts new connections (default true)."),
        serving: flag("Serves traffic, possibly while terminating."),
        terminating: flag("Is terminating."),
      }),
      hostname: text("Hostname of the endpoint."),
      nodeName: text("Node of the endpoint."),
      zone: text("Zone of the endpoint."),
      targetRef: object("The Pod of the endpoint.", reference),
      hints: object("Which clients should use the endpoint.", {
        forZones: objects("Zones.", { name: text("A zone.") }),
        forNodes: objects("Nodes.", { name: text("A node.") }),
      }),
      deprecatedTopology: map("Ignored."),
    }),
  }),
  Endpoints: object("Endpoints of a Service in the deprecated API; made from EndpointSlices.", {
    ...listMetadata,
    subsets: objects("Addresses with the same ports.", {
      ...ignored("addresses notReadyAddresses ports", "Made from EndpointSlices."),
    }),
  }),
  Node: object("A network namespace with a proxy and the Pods on it.", {
    ...listMetadata,
    spec: object("Pod networks and scheduling.", {
      podCIDR: text("Network of the Pods on the node."),
      podCIDRs: texts("Networks of the Pods on the node, one per family."),
      unschedulable: flag("Whether new Pods are not scheduled on the node."),
      taints: objects("Taints; only Pods that tolerate them are scheduled.", {
        key: required(text("A name.")),
        value: text("A value."),
        effect: required(text("Effect of the taint.", "NoSchedule", "PreferNoSchedule", "NoExecute")),
        timeAdded: text("Ignored."),
      }),
      ...ignored("configSource externalID providerID", "Accepted and ignored."),
    }),
    status,
  }),
  Namespace: object("A scope for names; deleting it deletes its objects.", {
    ...listMetadata,
    spec: object("Not used.", { finalizers: texts("Ignored.") }),
    status,
  }),
  ServiceCIDR: object("Networks of the cluster IPs.", {
    ...listMetadata,
    spec: object("Networks.", { cidrs: texts("One per family.") }),
    status,
  }),
  Event: object("An event of an object.", event),
};
