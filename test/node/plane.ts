// The control plane of the test cluster: etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one network namespace.
import type { ChildProcess } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { apiClient, type Client } from "../cluster/client.ts";
import { etcdArguments, etcdUrl, untilReady, writeKubeconfig } from "../cluster/control-plane.ts";
import { createPki, type KeyPair, type Pki } from "../cluster/pki.ts";
import type { Namespace } from "../kernel/netns.ts";
import { twin } from "../places.ts";
import { enter } from "../reference/foothold.ts";
import { addresses, podNetwork, serviceNetwork } from "./lan.ts";

type Program = "etcd" | "kube-apiserver" | "kube-controller-manager" | "kube-scheduler";

export type Plane = {
  readonly pki: Pki;
  readonly url: string;
  readonly api: Client;
  /** Writes a kubeconfig for a client of this name and subject and returns its path. */
  kubeconfig(name: string, subject: string): string;
  /** A kubeconfig of a cluster administrator. */
  readonly admin: string;
  stopApiServer(): Promise<void>;
  startApiServer(): Promise<void>;
  close(): Promise<void>;
};

const port = 6443;

export async function startPlane(
  netns: Namespace,
  folder: string,
  binaries: Readonly<Record<Program, string>>,
): Promise<Plane> {
  mkdirSync(folder, { recursive: true });
  const foothold = enter(netns);
  const pki = createPki(folder, [
    addresses.plane,
    "127.0.0.1",
    serviceNetwork.replace(/\d+\/\d+$/, "1"),
    "kubernetes.default.svc",
  ]);
  const url = `https://${addresses.plane}:${port}`;
  const api = apiClient(netns, pki, addresses.plane, port);
  const start = (program: Program, args: readonly string[]): ChildProcess => {
    const output = openSync(join(folder, `${program}.log`), "a");
    const child = foothold.start(binaries[program], args, output);
    closeSync(output);
    return child;
  };
  const kubeconfigOf = (name: string, { cert, key }: KeyPair): string =>
    writeKubeconfig(join(folder, `${name}.kubeconfig`), pki.ca, url, {
      "client-certificate": cert,
      "client-key": key,
    });
  const kubeconfig = (name: string, subject: string): string => kubeconfigOf(name, pki.client(name, subject));
  const toKubelets = pki.client("kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client");

  start("etcd", etcdArguments(folder));
  let apiServer: ChildProcess;
  const startApiServer = async (): Promise<void> => {
    apiServer = start("kube-apiserver", apiServerArguments(pki, toKubelets));
    await untilReady(api, apiServer, () => readFileSync(join(folder, "kube-apiserver.log"), "utf8"));
  };
  await startApiServer();
  start("kube-controller-manager", controllerArguments(pki, kubeconfigOf("kcm", pki.controllerManager)));
  start("kube-scheduler", schedulerArguments(kubeconfig("scheduler", "/CN=system:kube-scheduler")));
  return {
    pki,
    url,
    api,
    kubeconfig,
    admin: kubeconfigOf("admin", pki.admin),
    startApiServer,
    async stopApiServer() {
      const gone = new Promise((resolve) => apiServer.once("exit", resolve));
      apiServer.kill("SIGKILL");
      await gone;
    },
    close: () => foothold.leave(),
  };
}

function apiServerArguments({ ca, server, serviceAccount }: Pki, toKubelets: KeyPair): readonly string[] {
  return [
    `--etcd-servers=${etcdUrl}`,
    `--bind-address=${addresses.plane}`,
    `--advertise-address=${addresses.plane}`,
    `--secure-port=${port}`,
    `--client-ca-file=${ca}`,
    `--tls-cert-file=${server.cert}`,
    `--tls-private-key-file=${server.key}`,
    `--kubelet-client-certificate=${toKubelets.cert}`,
    `--kubelet-client-key=${toKubelets.key}`,
    "--kubelet-preferred-address-types=InternalIP",
    `--service-account-key-file=${serviceAccount.pub}`,
    `--service-account-signing-key-file=${serviceAccount.key}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-cluster-ip-range=${serviceNetwork},${twin(serviceNetwork)}`,
    "--authorization-mode=Node,RBAC",
    "--allow-privileged=true",
  ];
}

function controllerArguments({ ca, serviceAccount }: Pki, kubeconfig: string): readonly string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    `--root-ca-file=${ca}`,
    `--service-account-private-key-file=${serviceAccount.key}`,
    `--cluster-cidr=${podNetwork},${twin(podNetwork)}`,
    "--use-service-account-credentials=true",
    "--bind-address=127.0.0.1",
    "--leader-elect=false",
    "--kube-api-qps=200",
    "--kube-api-burst=400",
  ];
}

function schedulerArguments(kubeconfig: string): readonly string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    "--bind-address=127.0.0.1",
    "--leader-elect=false",
  ];
}
