// The Service that requests are sent to while something is broken: servers on each node, and a client pod.
import type { NodeCluster } from "./cluster.ts";
import { imageNames } from "./images.ts";
import { addresses, nodeNames } from "./lan.ts";
import { type Sender, startSender } from "./requests.ts";

const namespace = "chaos";
const nodePort = 30_080;
const clusterIP = "172.30.0.80";
const labels = { app: "web" };

export const deployment = ["-n", namespace, "deployment/web"] as const;

export function startWeb({ kubectl }: NodeCluster): void {
  kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
  kubectl(["rollout", "status", ...deployment, "--timeout=3m"]);
  kubectl(["-n", namespace, "wait", "--for=condition=Ready", "pod/client", "--timeout=3m"]);
}

export function removeWeb({ kubectl }: NodeCluster): void {
  kubectl(["delete", "namespace", namespace, "--wait=true"]);
}

/** From a pod to the cluster IP. The client enters the pod's namespace: it must not depend on the API server that a disturbance stops. */
export function fromPod({ machines }: NodeCluster): Sender {
  const machine = machines[nodeNames[0]!];
  const [task] = machine.tasks("client");
  if (task === undefined) throw new Error("the client pod does not run");
  return startSender(`/proc/${machine.firstProcess()}/root/proc/${task.pid}/ns/net`, `${clusterIP}:80`);
}

/** From outside to the node port. */
export function fromOutside({ lan }: NodeCluster): Sender {
  return startSender(lan.outside.path, `${addresses[nodeNames[1]!]}:${nodePort}`);
}

/**
 * Deletes tracked connections to the Service. Those opened while there were no rules have no translation, live for two minutes, and
 * would swallow a new connection from the same port.
 */
export function forgetConnections({ machines }: NodeCluster): void {
  // It fails where there are none.
  for (const name of nodeNames)
    for (const filter of [`--orig-dst ${clusterIP}`, `--proto tcp --orig-port-dst ${nodePort}`])
      machines[name].run("sh", "-c", `conntrack --delete ${filter} >/dev/null 2>&1 || true`);
}

const spread = {
  maxSkew: 1,
  topologyKey: "kubernetes.io/hostname",
  whenUnsatisfiable: "DoNotSchedule",
  labelSelector: { matchLabels: labels },
};

const objects: readonly object[] = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace },
    spec: {
      type: "NodePort",
      clusterIP,
      selector: labels,
      ports: [{ port: 80, targetPort: 8080, nodePort }],
    },
  },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace },
    spec: {
      replicas: 2 * nodeNames.length,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 20,
          topologySpreadConstraints: [spread],
          containers: [
            {
              name: "web",
              image: imageNames.agnhost,
              // A server keeps serving for a while after SIGTERM, as a well-behaved one does.
              args: ["netexec", "--http-port=8080", "--delay-shutdown=10"],
              readinessProbe: { httpGet: { path: "/healthz", port: 8080 }, periodSeconds: 1 },
            },
          ],
        },
      },
    },
  },
  {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "client", namespace },
    spec: {
      nodeName: nodeNames[0],
      terminationGracePeriodSeconds: 1,
      containers: [{ name: "client", image: imageNames.agnhost, args: ["pause"] }],
    },
  },
];
