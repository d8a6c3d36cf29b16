// A real control plane in a network namespace: etcd, kube-apiserver with RBAC, and the controllers Services need.
import type { ChildProcess } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Namespace } from "../kernel/netns.ts";
import { places, serviceNetwork, twin } from "../places.ts";
import { enter, isAlive } from "../reference/foothold.ts";
import { apiClient, type Client } from "./client.ts";
import { createPki, type Pki } from "./pki.ts";

export type Binaries = Readonly<Record<"etcd" | "kube-apiserver" | "kube-controller-manager", string>>;

export type ControlPlane = {
  readonly folder: string;
  readonly pki: Pki;
  readonly url: string;
  readonly api: Client;
  /** Stops the API server and starts it again; etcd keeps the objects. */
  restartApiServer(pauseMs: number): Promise<void>;
  /** Forgets the history of etcd: every watch from before is answered with 410. */
  compact(): void;
  log(program: keyof Binaries): string;
  close(): Promise<void>;
};

const address = places.host;
const port = 6443;
export const etcdUrl = "http://127.0.0.1:2379";

export async function startControlPlane(netns: Namespace, binaries: Binaries): Promise<ControlPlane> {
  const folder = mkdtempSync(join(tmpdir(), "turnout-cluster-"));
  const foothold = enter(netns);
  const pki = createPki(folder, [address, "127.0.0.1", "kubernetes.default.svc"]);
  const url = `https://${address}:${port}`;
  const api = apiClient(netns, pki, address, port);
  const start = (program: keyof Binaries, args: readonly string[]): ChildProcess => {
    const output = openSync(join(folder, `${program}.log`), "a");
    const child = foothold.start(binaries[program], args, output);
    closeSync(output);
    return child;
  };
  const log = (program: keyof Binaries): string => readFileSync(join(folder, `${program}.log`), "utf8");
  const startApiServer = async (): Promise<ChildProcess> => {
    const child = start("kube-apiserver", apiServerArguments(pki));
    await untilReady(api, child, () => log("kube-apiserver"));
    return child;
  };

  const close = async (): Promise<void> => {
    await foothold.leave();
    rmSync(folder, { recursive: true, force: true });
  };

  start("etcd", etcdArguments(folder));
  let apiServer = await startApiServer().catch(async (error: unknown) => {
    await close();
    throw error;
  });
  start("kube-controller-manager", controllerArguments(pki, controllerKubeconfig(folder, pki, url)));
  return {
    folder,
    pki,
    url,
    api,
    log,
    async restartApiServer(pauseMs) {
      await killed(apiServer);
      await sleep(pauseMs);
      apiServer = await startApiServer();
    },
    compact: () => compact(netns),
    close,
  };
}

export function etcdArguments(folder: string): readonly string[] {
  const peer = "http://127.0.0.1:2380";
  return [
    `--data-dir=${join(folder, "etcd")}`,
    `--listen-client-urls=${etcdUrl}`,
    `--advertise-client-urls=${etcdUrl}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    // The data lives as long as the test.
    "--unsafe-no-fsync",
    "--log-level=warn",
  ];
}

function apiServerArguments({ ca, server, serviceAccount }: Pki): readonly string[] {
  return [
    `--etcd-servers=${etcdUrl}`,
    `--bind-address=${address}`,
    `--advertise-address=${address}`,
    `--secure-port=${port}`,
    `--client-ca-file=${ca}`,
    `--tls-cert-file=${server.cert}`,
    `--tls-private-key-file=${server.key}`,
    `--service-account-key-file=${serviceAccount.pub}`,
    `--service-account-signing-key-file=${serviceAccount.key}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    "--service-account-extend-token-expiration=false",
    `--service-cluster-ip-range=${serviceNetwork},${twin(serviceNetwork).replace(/\/\d+$/, "/112")}`,
    "--service-node-port-range=30000-32767",
    "--authorization-mode=RBAC",
    "--endpoint-reconciler-type=none",
    "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    "--allow-privileged=true",
  ];
}

const controllers = [
  "endpointslice-controller",
  "serviceaccount-controller",
  "namespace-controller",
  "service-cidr-controller",
];

function controllerArguments({ ca, serviceAccount }: Pki, kubeconfig: string): readonly string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    `--root-ca-file=${ca}`,
    `--service-account-private-key-file=${serviceAccount.key}`,
    `--controllers=${controllers.join(",")}`,
    "--use-service-account-credentials=true",
    "--bind-address=127.0.0.1",
    "--leader-elect=false",
    "--concurrent-service-endpoint-syncs=10",
    "--kube-api-qps=500",
    "--kube-api-burst=500",
  ];
}

function controllerKubeconfig(folder: string, { ca, controllerManager }: Pki, server: string): string {
  const user = { "client-certificate": controllerManager.cert, "client-key": controllerManager.key };
  return writeKubeconfig(join(folder, "controller-manager.kubeconfig"), ca, server, user);
}

export function writeKubeconfig(file: string, ca: string, server: string, user: object): string {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server, "certificate-authority": ca } }],
    users: [{ name: "user", user }],
    contexts: [{ name: "test", context: { cluster: "test", user: "user" } }],
    "current-context": "test",
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

/** Waits until the API server is ready. */
export async function untilReady(api: Client, child: ChildProcess, log: () => string): Promise<void> {
  const deadline = Date.now() + 120_000;
  for (;;) {
    const ready = await api("GET", "/readyz").catch(() => null);
    if (ready?.code === 200) return;
    if (!isAlive(child) || Date.now() > deadline)
      throw new Error(`kube-apiserver did not get ready:\n${log().slice(-4000)}`);
    await sleep(100);
  }
}

async function killed(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

/** etcd's JSON gateway: learns the revision, then compacts to it. */
function compact(netns: Namespace): void {
  const post = (path: string, body: object): string =>
    netns.run(process.execPath, "-e", posting, `${etcdUrl}${path}`, JSON.stringify(body));
  const { header } = JSON.parse(post("/v3/kv/range", { key: "AA==" })) as {
    header: { revision: string };
  };
  post("/v3/kv/compaction", { revision: header.revision, physical: true });
}

const posting = `const [, url, body] = process.argv;
fetch(url, { method: "POST", body }).then((r) => r.text()).then((text) => process.stdout.write(text));`;
