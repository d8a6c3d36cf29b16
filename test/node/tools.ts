// Asks Turnout's own tools in each of its pods, as a user would with kubectl, and returns what is wrong.
import type { NodeCluster } from "./cluster.ts";
import type { Installed } from "./install.ts";
import { nodeNames } from "./lan.ts";

export function checkTools(cluster: NodeCluster, { daemonSet, mode, way }: Installed): string[] {
  const problems: string[] = [];
  for (const node of nodeNames) {
    const pod = podOn(cluster, daemonSet, node);
    const container = daemonSet === "turnout" ? "turnout" : "kube-proxy";
    const turnout = (...args: readonly string[]): string => {
      try {
        return cluster.kubectl(["-n", "kube-system", "exec", pod, "-c", container, "--", "turnout", ...args]);
      } catch (error) {
        problems.push(`${way}, ${node}: turnout ${args.join(" ")}: ${(error as Error).message}`);
        return "";
      }
    };
    const status = turnout("status", "-o", "json");
    if (status !== "") problems.push(...checkStatus(JSON.parse(status), mode, node, way));
    const trace = turnout("explain", "outside", "svc/kube-system/kube-dns:53/udp");
    if (trace !== "" && !/forward/.test(trace))
      problems.push(`${way}, ${node}: explain does not forward:\n${trace}`);
    turnout("diff", "--live");
    turnout("render", "-o", mode === "nftables" ? "nftables" : "routes");
  }
  return problems;
}

function checkStatus(
  status: { mode?: string; node?: string },
  mode: string,
  node: string,
  way: string,
): string[] {
  const wrong = [
    ...(status.mode === mode ? [] : [`mode is ${status.mode}`]),
    ...(status.node === node ? [] : [`node is ${status.node}`]),
  ];
  return wrong.map((text) => `${way}, ${node}: status: ${text}`);
}

function podOn({ kubectl }: NodeCluster, daemonSet: string, node: string): string {
  const label = daemonSet === "turnout" ? "app.kubernetes.io/name=turnout" : "k8s-app=kube-proxy";
  const query = [`--field-selector=spec.nodeName=${node},status.phase=Running`, "-l", label, "-o", "name"];
  return kubectl(["-n", "kube-system", "get", "pods", ...query])
    .trim()
    .split("\n")[0]!;
}
