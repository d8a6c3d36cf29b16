// Slow: what lists and watches cost in each encoding: bytes on the wire, CPU of a real kube-apiserver, CPU and memory of the client.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findAssets } from "../test/assets.ts";
import { type ControlPlane, startControlPlane, writeKubeconfig } from "../test/cluster/control-plane.ts";
import { type ApiRelay, relayTo } from "../test/cluster/relay.ts";
import { createNamespace, type Namespace, processesIn } from "../test/kernel/netns.ts";
import { places } from "../test/places.ts";
import { enter } from "../test/reference/foothold.ts";
import { encodeObject } from "../test/support/protobuf/encode.ts";
import { type ClientKind, clientKinds, followAsClient } from "./lib/api-client.ts";
import { clusterOf, nodeName, type Size, sizeText, sliceObject } from "./lib/cluster.ts";
import { publish, type Row } from "./lib/measure.ts";
import { printSkip, start, startAsRoot } from "./lib/run.ts";
import { cpuSeconds, peakMiB } from "./lib/usage.ts";

const size: Size = { services: Number(process.env.TURNOUT_API_SERVICES ?? 10_000), endpoints: 10 };
const events = 1000;
const nodes = 5000;

const [kind, kubeconfig] = process.argv.slice(2);
if (kind === undefined) startAsRoot(main);
else start(() => followAsClient(kind as ClientKind, kubeconfig!));

async function main(): Promise<void> {
  const assets = findAssets("etcd", "kube-apiserver", "kube-proxy");
  if (!assets.found) return printSkip(assets.reason);
  const netns = createNamespace("api-bench");
  netns.ip("link set lo up", `addr add ${places.host}/32 dev lo`);
  const plane = await startControlPlane(netns, { ...assets.paths, "kube-controller-manager": "false" });
  const listener = await enter(netns).listen("127.0.0.1", 7443);
  const relay = await relayTo(netns, places.host, 6443, listener);
  const user = { "client-certificate": plane.pki.admin.cert, "client-key": plane.pki.admin.key };
  const file = join(plane.folder, "bench.kubeconfig");
  const kubeconfigFile = writeKubeconfig(file, plane.pki.ca, "https://127.0.0.1:7443", user);
  const stage: Stage = { netns, plane, relay, kubeconfig: kubeconfigFile, apiServer: apiServerIn(netns) };
  try {
    // Slices alone: for Services that were not allocated through the API, the server would write repairs and Events.
    store(
      stage,
      clusterOf(size).filter(({ kind: of }) => of !== "Service"),
    );
    await sleep(5000);
    publish(await measured(stage, assets.paths["kube-proxy"]));
  } finally {
    relay.close();
    await plane.close();
    netns.remove();
  }
}

type Stage = {
  readonly netns: Namespace;
  readonly plane: ControlPlane;
  readonly relay: ApiRelay;
  readonly kubeconfig: string;
  /** Its process. */
  readonly apiServer: number;
};

type Cost = { readonly bytes: number; readonly cpu: number };

async function measured(stage: Stage, kubeProxy: string): Promise<readonly Row[]> {
  const none = await cost(stage, () => change(stage, 1));
  const rows: Row[] = [
    { what: `${events} changes without a client: API server`, value: none.cpu * 1000, unit: "ms" },
  ];
  for (const [i, client] of [...clientKinds, "kube-proxy" as const].entries()) {
    const started = { child: null as ReturnType<typeof spawn> | null };
    const list = await cost(stage, async () => {
      started.child = client === "kube-proxy" ? proxyIn(stage, kubeProxy) : clientIn(stage, client);
      await quiet(stage.relay);
    });
    const watch = await cost(stage, async () => {
      change(stage, i + 2);
      await quiet(stage.relay);
    });
    const pid = started.child!.pid!;
    const own = { cpu: cpuSeconds(pid), peak: peakMiB(pid) };
    started.child!.kill("SIGKILL");
    await once(started.child!, "exit");
    const what = `${client}, ${sizeText(size)}`;
    rows.push(
      { what: `${what} list: bytes`, value: list.bytes / 1e6, unit: "MB" },
      { what: `${what} list: API server`, value: list.cpu * 1000, unit: "ms" },
      { what: `${what} list, ${nodes} nodes: bytes`, value: (list.bytes * nodes) / 1e9, unit: "GB" },
      { what: `${what} list, ${nodes} nodes: API server`, value: list.cpu * nodes, unit: "s" },
      { what: `${client}, ${events} events: bytes`, value: watch.bytes / 1e6, unit: "MB" },
      { what: `${client}, ${events} events: API server`, value: (watch.cpu - none.cpu) * 1000, unit: "ms" },
    );
    if (client !== "kube-proxy")
      rows.push(
        { what: `${client}: CPU of the client, to the Snapshots`, value: own.cpu * 1000, unit: "ms" },
        { what: `${client}: peak memory of the client`, value: own.peak, unit: "MiB" },
      );
  }
  return rows;
}

async function cost({ relay, apiServer }: Stage, work: () => unknown): Promise<Cost> {
  const before = { bytes: relay.received(), cpu: cpuSeconds(apiServer) };
  await work();
  await sleep(1000);
  return { bytes: relay.received() - before.bytes, cpu: cpuSeconds(apiServer) - before.cpu };
}

/** Until something was received and nothing more for three seconds. */
async function quiet(relay: ApiRelay): Promise<void> {
  const start = relay.received();
  for (let last = -1, since = Date.now(); ; await sleep(50)) {
    const now = relay.received();
    if (now !== last) since = Date.now();
    last = now;
    if (now > start && Date.now() - since > 3000) return;
  }
}

function clientIn({ netns, kubeconfig: file }: Stage, client: ClientKind) {
  const args = ["netns", "exec", netns.name, process.execPath, process.argv[1]!, client, file];
  return spawn("ip", args, { stdio: ["ignore", "ignore", "inherit"] });
}

function proxyIn({ netns, plane, kubeconfig: file }: Stage, program: string) {
  const zero = "0s";
  const config = {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "nftables",
    hostnameOverride: nodeName,
    clientConnection: { kubeconfig: file },
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: zero, tcpCloseWaitTimeout: zero },
    oomScoreAdj: 0,
  };
  const path = join(plane.folder, "bench-proxy.json");
  writeFileSync(path, JSON.stringify(config));
  return spawn("ip", ["netns", "exec", netns.name, program, `--config=${path}`], { stdio: "ignore" });
}

/** Moves the endpoints of the first Services. */
function change(stage: Stage, generation: number): void {
  store(
    stage,
    Array.from({ length: events }, (_, i) => sliceObject(i, size.endpoints, (generation % 3) + 1)),
  );
}

const folders: Readonly<Record<string, string>> = {
  Service: "services/specs",
  EndpointSlice: "endpointslices",
  Node: "minions",
};

/** Written to etcd as the API server stores them: through the API the load would take minutes. */
function store({ netns, plane }: Stage, objects: readonly ReturnType<typeof sliceObject>[]): void {
  const puts = objects.map(({ kind: of, ...object }) => {
    const { namespace, name } = object.metadata;
    const key = ["/registry", folders[of]!, ...(namespace === undefined ? [] : [namespace]), name].join("/");
    const uid = `00000000-0000-4000-8000-${name.padStart(12, "0").slice(-12)}`;
    const metadata = { ...object.metadata, uid, creationTimestamp: "2026-01-02T03:04:05Z" };
    const value = encodeObject({ ...object, kind: of, metadata })!.toString("base64");
    return { requestPut: { key: Buffer.from(key).toString("base64"), value } };
  });
  const file = join(plane.folder, "puts.json");
  writeFileSync(file, JSON.stringify(puts));
  netns.run(process.execPath, "-e", storing, file);
}

const storing = `(async () => {
  const puts = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"));
  for (let i = 0; i < puts.length; i += 100) {
    const body = JSON.stringify({ success: puts.slice(i, i + 100) });
    const answer = await fetch("http://127.0.0.1:2379/v3/kv/txn", { method: "POST", body });
    if (!answer.ok) throw new Error(await answer.text());
  }
})()`;

function apiServerIn({ name }: Namespace): number {
  const pid = processesIn(name).find((each) =>
    readFileSync(`/proc/${each}/cmdline`, "utf8").includes("kube-apiserver"),
  );
  if (pid === undefined) throw new Error("there is no kube-apiserver");
  return Number(pid);
}
