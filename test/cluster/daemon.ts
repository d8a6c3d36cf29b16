// A kube-proxy in the test cluster: its ServiceAccount with the rights it needs and no more, its token file, itself.
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nodeName } from "../places.ts";
import { enter } from "../reference/foothold.ts";
import { clusterCIDRs } from "../reference/places.ts";
import type { Mode } from "../reference/proxy.ts";
import { type Cluster, writeToken } from "./cluster.ts";
import { writeKubeconfig } from "./control-plane.ts";

export type Daemon = {
  log(): string;
  /** Whether it still runs. */
  alive(): boolean;
  stop(): Promise<void>;
};

const tokenFile = "kube-proxy.token";

/** The account of a kube-proxy; made again, its old tokens are worth nothing. */
export async function createAccount(cluster: Cluster): Promise<void> {
  const path = "/api/v1/namespaces/kube-system/serviceaccounts";
  await cluster.remove(`${path}/kube-proxy`).catch(() => undefined);
  await cluster.create(path, { metadata: { name: "kube-proxy" } });
  await writeToken(cluster, tokenFile);
}

export async function bindRole({ create }: Cluster): Promise<void> {
  await create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    metadata: { name: "kube-proxy" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:node-proxier" },
    subjects: [{ kind: "ServiceAccount", name: "kube-proxy", namespace: "kube-system" }],
  });
}

export function startDaemon({ world, plane }: Cluster, program: string, mode: Mode): Daemon {
  const at = (name: string): string => join(plane.folder, name);
  const kubeconfig = writeKubeconfig(at("kube-proxy.kubeconfig"), plane.pki.ca, plane.url, {
    tokenFile: at(tokenFile),
  });
  const zero = "0s";
  const config = {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode,
    hostnameOverride: nodeName,
    clusterCIDR: clusterCIDRs,
    clientConnection: { kubeconfig },
    healthzBindAddress: "127.0.0.1:10256",
    metricsBindAddress: "127.0.0.1:10249",
    oomScoreAdj: 0,
    conntrack: {
      maxPerCore: 0,
      min: 0,
      tcpEstablishedTimeout: zero,
      tcpCloseWaitTimeout: zero,
      udpTimeout: zero,
      udpStreamTimeout: zero,
    },
    iptables: { minSyncPeriod: "100ms" },
    nftables: { minSyncPeriod: "100ms" },
  };
  writeFileSync(at("kube-proxy.json"), JSON.stringify(config));
  const foothold = enter(world.node);
  const logFile = at(`kube-proxy-${mode}.log`);
  const output = openSync(logFile, "a");
  const child = foothold.start(program, [`--config=${at("kube-proxy.json")}`, "-v=2"], output);
  closeSync(output);
  return {
    log: () => readFileSync(logFile, "utf8"),
    alive: () => child.exitCode === null && child.signalCode === null,
    async stop() {
      await foothold.leave();
      world.sweep();
    },
  };
}
