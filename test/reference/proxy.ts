// Runs one kube-proxy, the real one or ours, in its own namespace on cluster objects that the test supplies.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Encoder, jsonEncoder } from "../../playground/api/http/encoder.ts";
import { ApiServer } from "../../playground/api/server.ts";
import { type Foothold, isAlive } from "./foothold.ts";
import { allKinds, type KubeObject, replaceObjects } from "./objects.ts";

export type Mode = "nftables" | "iptables" | "userspace";

/** Fields of KubeProxyConfiguration that a case sets; the rest is filled in so that nothing machine-wide is touched. */
export type Configuration<M extends string = Mode> = { readonly mode: M; readonly [field: string]: unknown };

export type RunningProxy = {
  readonly api: ApiServer;
  readonly pid: number;
  /** Whether both families have synced; the answer costs the process milliseconds. */
  synced(): Promise<boolean>;
  /** Resolves after the first sync of both families. */
  ready(pace?: { readonly timeoutMs: number; readonly everyMs: number }): Promise<void>;
  log(): string;
  stop(): Promise<void>;
};

const apiAddress = { host: "127.0.0.1", port: 6443 };
const metricsAddress = "127.0.0.1:10249";

export async function startProxy(
  foothold: Foothold,
  program: string,
  configuration: Configuration<Mode | "ipvs">,
  nodeName: string,
  objects: readonly KubeObject[],
  encoder: Encoder = jsonEncoder,
): Promise<RunningProxy> {
  const folder = mkdtempSync(join(tmpdir(), "turnout-reference-"));
  const file = (name: string, content: unknown): string => {
    writeFileSync(join(folder, name), JSON.stringify(content));
    return join(folder, name);
  };
  const kubeconfig = file("kubeconfig.json", kubeconfigFor(`http://${apiAddress.host}:${apiAddress.port}`));
  const config = file(
    "config.json",
    completed(configuration, { kubeconfig, contentType: encoder.contentType }, nodeName),
  );
  const api = new ApiServer({ encoder });
  const clear = async (): Promise<void> => {
    await api.close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await api.listen(await foothold.listen(apiAddress.host, apiAddress.port));
    replaceObjects(api, objects);
    // An encoder that keeps what it encoded is then fast when the program lists.
    for (const object of allKinds.flatMap((kind) => api.list(kind))) encoder.event("ADDED", object);
    const output = openSync(join(folder, "log"), "a");
    const child = foothold.start(program, [`--config=${config}`, "-v=2"], output);
    closeSync(output);
    const log = (): string => readFileSync(join(folder, "log"), "utf8");
    return {
      api,
      pid: child.pid!,
      log,
      synced: () => hasSynced(foothold),
      async ready({ timeoutMs, everyMs } = { timeoutMs: 60_000, everyMs: 60 }) {
        const deadline = Date.now() + timeoutMs;
        while (!(await hasSynced(foothold))) {
          if (!isAlive(child) || Date.now() > deadline)
            throw new Error(`${program} did not sync:\n${log().split("\n").slice(-30).join("\n")}`);
          await sleep(everyMs);
        }
      },
      async stop() {
        await ended(child);
        await clear();
      },
    };
  } catch (error) {
    await clear();
    throw error;
  }
}

/** Sends SIGTERM, and SIGKILL when it does not end. */
async function ended(child: ChildProcess): Promise<void> {
  if (!isAlive(child)) return;
  const gone = once(child, "exit");
  const deaf = setTimeout(() => child.kill("SIGKILL"), 10_000);
  child.kill("SIGTERM");
  await gone;
  clearTimeout(deaf);
}

function completed(configuration: Configuration<string>, clientConnection: object, nodeName: string): object {
  const periods = { syncPeriod: "1h", minSyncPeriod: "10ms" };
  const { mode, iptables, nftables, ipvs, conntrack, ...others } = configuration;
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode,
    hostnameOverride: nodeName,
    clientConnection: { ...clientConnection, qps: -1 },
    healthzBindAddress: "127.0.0.1:10256",
    metricsBindAddress: metricsAddress,
    // Zeros leave nf_conntrack_max, the hash size and the time-outs of this machine alone.
    conntrack: {
      maxPerCore: 0,
      min: 0,
      tcpEstablishedTimeout: "0s",
      tcpCloseWaitTimeout: "0s",
      udpTimeout: "0s",
      udpStreamTimeout: "0s",
      ...(conntrack as object),
    },
    oomScoreAdj: 0,
    iptables: { ...periods, ...(iptables as object) },
    nftables: { ...periods, ...(nftables as object) },
    // On a slow machine the two families of kube-proxy may keep each other from a lock, and it does not try again before.
    ipvs: { ...periods, syncPeriod: "5m", ...(ipvs as object) },
    ...others,
  };
}

function kubeconfigFor(server: string): object {
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "" } }],
    "current-context": "test",
  };
}

async function hasSynced(foothold: Foothold): Promise<boolean> {
  const metrics = (await foothold.get(`http://${metricsAddress}/metrics`)) ?? "";
  return ["IPv4", "IPv6"].every((family) => {
    const stamp = new RegExp(
      `^kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="${family}"} (.*)$`,
      "m",
    );
    return Number(metrics.match(stamp)?.[1] ?? 0) > 0;
  });
}
