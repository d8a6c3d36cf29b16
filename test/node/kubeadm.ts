// A DaemonSet as kubeadm writes it for kube-proxy: where a user only replaces the image.
import { stringify } from "yaml";
import { twin } from "../places.ts";
import { podNetwork } from "./lan.ts";

export type ProxyMode = "nftables" | "iptables" | "userspace";

type KubeObject = { readonly kind: string; readonly [field: string]: unknown };

const labels = { "k8s-app": "kube-proxy" };
const account = { kind: "ServiceAccount", name: "kube-proxy", namespace: "kube-system" };

/** Conntrack limits belong to the whole machine, which the test does not own. */
export const conntrack = { maxPerCore: 0, min: 0 };

export function kubeadmObjects(image: string, mode: ProxyMode, apiServer: string): readonly KubeObject[] {
  return [
    {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: account.name, namespace: account.namespace },
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "kubeadm:node-proxier" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:node-proxier" },
      subjects: [account],
    },
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "kube-proxy", namespace: "kube-system", labels: { app: "kube-proxy" } },
      data: {
        "config.conf": stringify(configuration(mode)),
        "kubeconfig.conf": stringify(kubeconfig(apiServer)),
      },
    },
    daemonSet(image),
  ];
}

function configuration(mode: ProxyMode): object {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    bindAddress: "0.0.0.0",
    clientConnection: { kubeconfig: "/var/lib/kube-proxy/kubeconfig.conf" },
    clusterCIDR: `${podNetwork},${twin(podNetwork)}`,
    conntrack,
    metricsBindAddress: "0.0.0.0:10249",
    mode,
  };
}

function kubeconfig(server: string): object {
  const mount = "/var/run/secrets/kubernetes.io/serviceaccount";
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "default", cluster: { "certificate-authority": `${mount}/ca.crt`, server } }],
    contexts: [{ name: "default", context: { cluster: "default", namespace: "default", user: "default" } }],
    "current-context": "default",
    users: [{ name: "default", user: { tokenFile: `${mount}/token` } }],
  };
}

function daemonSet(image: string): KubeObject {
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: "kube-proxy", namespace: "kube-system", labels },
    spec: {
      selector: { matchLabels: labels },
      updateStrategy: { type: "RollingUpdate" },
      template: {
        metadata: { labels },
        spec: {
          priorityClassName: "system-node-critical",
          hostNetwork: true,
          serviceAccountName: account.name,
          nodeSelector: { "kubernetes.io/os": "linux" },
          tolerations: [{ operator: "Exists" }],
          containers: [
            {
              name: "kube-proxy",
              image,
              imagePullPolicy: "IfNotPresent",
              command: [
                "/usr/local/bin/kube-proxy",
                "--config=/var/lib/kube-proxy/config.conf",
                "--hostname-override=$(NODE_NAME)",
              ],
              env: [{ name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }],
              securityContext: { privileged: true },
              volumeMounts: [
                { mountPath: "/var/lib/kube-proxy", name: "kube-proxy" },
                { mountPath: "/run/xtables.lock", name: "xtables-lock" },
                { mountPath: "/lib/modules", name: "lib-modules", readOnly: true },
              ],
            },
          ],
          volumes: [
            { name: "kube-proxy", configMap: { name: "kube-proxy" } },
            { name: "xtables-lock", hostPath: { path: "/run/xtables.lock", type: "FileOrCreate" } },
            { name: "lib-modules", hostPath: { path: "/lib/modules" } },
          ],
        },
      },
    },
  };
}
