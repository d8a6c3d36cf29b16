// Installs a proxy in the test cluster as a user would, and removes it again.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parse, stringify } from "yaml";
import type { NodeCluster } from "./cluster.ts";
import { imageNames } from "./images.ts";
import { conntrack, kubeadmObjects, type ProxyMode } from "./kubeadm.ts";
import { nodeNames } from "./lan.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");

/** The image as `npm run image` names it. */
export const turnoutImage = "docker.io/library/turnout:0.1.0";

export type Way = "kube-proxy" | "kustomize" | "helm" | "image swap";

export type Installed = {
  readonly daemonSet: string;
  readonly way: Way;
  readonly mode: ProxyMode;
};

export type InstallOptions = {
  readonly cluster: NodeCluster;
  readonly mode: ProxyMode;
  /** For files of the installation. */
  readonly folder: string;
  readonly helm: string | null;
};

export function install(way: Way, options: InstallOptions): Installed {
  const { cluster, mode } = options;
  const daemonSet = daemonSetOf(way);
  switch (way) {
    case "kube-proxy":
      applyKubeadm(options);
      break;
    case "image swap":
      applyKubeadm(options);
      rollOut(cluster, daemonSet);
      cluster.kubectl([
        ...["-n", "kube-system", "set", "image", `daemonset/${daemonSet}`, `kube-proxy=${turnoutImage}`],
      ]);
      break;
    case "kustomize":
      cluster.kubectl(["apply", "-k", writeOverlay(options)]);
      break;
    case "helm":
      runHelm(options, "install", "turnout", join(deploy, "chart"), `--values=${writeValues(options)}`);
      break;
  }
  rollOut(cluster, daemonSet);
  return { daemonSet, way, mode };
}

/** Changes the mode of an installed proxy to that of the options, as a user would, and waits until its pods are replaced. */
export function changeMode({ daemonSet, way }: Installed, options: InstallOptions): void {
  const { cluster } = options;
  switch (way) {
    case "kube-proxy":
    case "image swap":
      // Only the ConfigMap: the DaemonSet keeps its image.
      cluster.kubectl(["apply", "-f", "-"], kubeadmList(options, "ConfigMap"));
      cluster.kubectl(["-n", "kube-system", "rollout", "restart", `daemonset/${daemonSet}`]);
      break;
    // The new mode needs other capabilities, so that the pods are replaced.
    case "kustomize":
      cluster.kubectl(["apply", "-k", writeOverlay(options)]);
      break;
    case "helm":
      runHelm(options, "upgrade", "turnout", join(deploy, "chart"), `--values=${writeValues(options)}`);
      break;
  }
  rollOut(cluster, daemonSet);
}

/** Removes the proxy and the rules it leaves, as a user who changes to another one does. */
export function uninstall(installed: Installed, options: InstallOptions): void {
  const { cluster, folder } = options;
  switch (installed.way) {
    case "kube-proxy":
    case "image swap":
      cluster.kubectl(["delete", "--wait=true", "-f", "-"], kubeadmList(options));
      break;
    case "kustomize":
      cluster.kubectl(["delete", "--wait=true", "-k", join(folder, "overlay")]);
      break;
    case "helm":
      runHelm(options, "uninstall", "turnout", "--wait");
      break;
  }
  for (const name of nodeNames) {
    const machine = cluster.machines[name];
    machine.run("sh", "-c", "nft flush ruleset; conntrack -F 2>/dev/null || true");
  }
}

function daemonSetOf(way: Way): string {
  return way === "kustomize" || way === "helm" ? "turnout" : "kube-proxy";
}

export function rollOut(cluster: NodeCluster, daemonSet: string): void {
  const target = ["rollout", "status", `daemonset/${daemonSet}`, "--timeout=5m"];
  cluster.kubectl(["-n", "kube-system", ...target]);
}

function kubeadmList({ cluster, mode }: InstallOptions, only?: string): string {
  const all = kubeadmObjects(imageNames.kubeProxy, mode, cluster.plane.url);
  const items = all.filter(({ kind }) => only === undefined || kind === only);
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

function applyKubeadm(options: InstallOptions): void {
  options.cluster.kubectl(["apply", "-f", "-"], kubeadmList(options));
}

/** What docs/deployment.md has a user write. */
function writeOverlay({ cluster, mode, folder }: InstallOptions): string {
  const overlay = join(folder, "overlay");
  rmSync(overlay, { recursive: true, force: true });
  mkdirSync(overlay, { recursive: true });
  const base = (file: string): string => readFileSync(join(deploy, "base", file), "utf8");
  const config = parse(base("config.conf")) as object;
  writeFileSync(join(overlay, "config.conf"), stringify({ ...config, mode, conntrack }));
  const server = /https:\/\/\S+/;
  writeFileSync(join(overlay, "kubeconfig.conf"), base("kubeconfig.conf").replace(server, cluster.plane.url));
  const [name, tag] = turnoutImage.split(":");
  const kustomization = {
    resources: [relative(overlay, join(deploy, "base"))],
    components: mode === "nftables" ? [] : [relative(overlay, join(deploy, "other-modes"))],
    configMapGenerator: [
      {
        name: "turnout",
        namespace: "kube-system",
        behavior: "merge",
        files: ["config.conf", "kubeconfig.conf"],
      },
    ],
    images: [{ name: "turnout", newName: name, newTag: tag }],
  };
  writeFileSync(join(overlay, "kustomization.yaml"), stringify(kustomization));
  return overlay;
}

function writeValues({ cluster, mode, folder }: InstallOptions): string {
  const { hostname, port } = new URL(cluster.plane.url);
  const [repository, tag] = turnoutImage.split(":");
  const file = join(folder, "values.yaml");
  const values = {
    apiServer: { host: hostname, port: Number(port) },
    image: { repository, tag },
    config: { mode, conntrack },
    netRaw: mode !== "nftables",
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, stringify(values));
  return file;
}

function runHelm({ cluster, helm }: InstallOptions, ...args: readonly string[]): void {
  if (helm === null) throw new Error("helm is missing");
  cluster.runAtPlane(helm, `--kubeconfig=${cluster.plane.admin}`, "--namespace=kube-system", ...args);
}
