// The cluster's DNS, as a user would run it: CoreDNS behind a Service. Upstream's tests resolve names of Services.
import { imageNames } from "./images.ts";
import { nodeNames } from "./lan.ts";
import { clusterDNS } from "./machine.ts";

const corefile = `.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        ttl 5
    }
    loop
    reload
}
`;

const labels = { "k8s-app": "kube-dns" };

export const dnsObjects: readonly object[] = [
  { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "coredns", namespace: "kube-system" } },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "system:coredns" },
    rules: [
      { apiGroups: [""], resources: ["services", "pods", "namespaces"], verbs: ["list", "watch"] },
      { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
    ],
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: "system:coredns" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:coredns" },
    subjects: [{ kind: "ServiceAccount", name: "coredns", namespace: "kube-system" }],
  },
  {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "coredns", namespace: "kube-system" },
    data: { Corefile: corefile },
  },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "coredns", namespace: "kube-system" },
    spec: {
      replicas: nodeNames.length,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: "coredns",
          dnsPolicy: "Default",
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: "kubernetes.io/hostname",
              whenUnsatisfiable: "DoNotSchedule",
              labelSelector: { matchLabels: labels },
            },
          ],
          containers: [
            {
              name: "coredns",
              image: imageNames.coredns,
              imagePullPolicy: "Never",
              args: ["-conf", "/etc/coredns/Corefile"],
              readinessProbe: { httpGet: { path: "/ready", port: 8181 }, periodSeconds: 2 },
              volumeMounts: [{ name: "config", mountPath: "/etc/coredns", readOnly: true }],
            },
          ],
          volumes: [{ name: "config", configMap: { name: "coredns" } }],
        },
      },
    },
  },
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "kube-dns", namespace: "kube-system", labels },
    spec: {
      selector: labels,
      clusterIP: clusterDNS,
      ports: [
        { name: "dns", port: 53, protocol: "UDP" },
        { name: "dns-tcp", port: 53, protocol: "TCP" },
      ],
    },
  },
];
