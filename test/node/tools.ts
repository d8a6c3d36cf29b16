// Runs Turnout's own tools in each of its pods, as a user would with kubectl exec, and returns what is wrong.
import type { NodeCluster } from "./cluster.ts";
import type { Installed } from "./install.ts";
import { nodeNames } from "./lan.ts";

export function checkTools(cluster: NodeCluster, { daemonSet, mode }: Installed): string[] {
  const problems: string[] = [];
  for (const node of nodeNames) {
    const pod = podOn(cluster, daemonSet, node);
    const turnout = (...args: readonly string[]): string => {
      try {
        // The container has the name of the DaemonSet, in ours and in kubeadm's.
        return cluster.kubectl(["-n", "kube-system", "exec", pod, "-c", daemonSet, "--", "turnout", ...args]);
      } catch (error) {
        problems.push(`${node}: turnout ${args.join(" ")}: ${(error as Error).message}`);
        return "";
      }
    };
    const status = JSON.parse(turnout("status", "-o", "json") || "{}") as { mode?: string; node?: string };
    if (status.mode !== mode) problems.push(`${node}: status: mode is ${status.mode}`);
    if (status.node !== node) problems.push(`${node}: status: node is ${status.node}`);
    turnout("diff", "--live");
    turnout("doctor");
    turnout("render", "-o", mode === "nftables" ? "nftables" : "routes");
  }
  return problems;
}

function podOn({ kubectl }: NodeCluster, daemonSet: string, node: string): string {
  const label = daemonSet === "turnout" ? "app.kubernetes.io/name=turnout" : "k8s-app=kube-proxy";
  const query = [`--field-selector=spec.nodeName=${node},status.phase=Running`, "-l", label, "-o", "name"];
  return kubectl(["-n", "kube-system", "get", "pods", ...query])
    .trim()
    .split("\n")[0]!;
}
