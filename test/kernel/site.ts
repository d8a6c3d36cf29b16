// A separate node for the daemon as users run it: a namespace, an API server inside, a folder for its files.
import { type ChildProcess, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiServer, type ApiServerOptions } from "../../playground/api/server.ts";
import { nodeName, places, twin } from "../places.ts";
import { enter, type Foothold } from "../reference/foothold.ts";
import type { KubeObject } from "../reference/objects.ts";
import { caCert } from "../support/certificates.ts";
import { httpGet } from "./http.ts";
import { createNamespace, type Namespace, reasonToSkip } from "./netns.ts";

export type Site = {
  readonly netns: Namespace;
  readonly folder: string;
  readonly api: ApiServer;
  /** The API server answers from now on. */
  openApi(): Promise<void>;
  /** Writes the file that `start` gives the daemon. */
  configure(config: Configuration): string;
  start(order?: Order): Daemon;
  /** A folder with every program that the daemon may start, but these. */
  pathWithout(programs: RegExp): string;
  /** Runs a command line to its end. */
  finish(order?: Order): Promise<{ readonly code: number | null; readonly log: string }>;
  close(): Promise<void>;
};

export type Configuration = { readonly mode?: string; readonly [field: string]: unknown };

export type Order = {
  readonly config?: Configuration;
  readonly program?: "kube-proxy" | "turnout run";
  readonly args?: readonly string[];
  /** What starts the program: `["setpriv", …]`. */
  readonly by?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
};

export type Daemon = {
  readonly pid: number;
  log(): string;
  running(): boolean;
  /** The exit code, or null for a signal; rejects after two minutes. */
  ended(): Promise<number | null>;
  kill(signal: NodeJS.Signals): void;
  /** Resolves after the first Sync of these families. */
  ready(families?: readonly ("IPv4" | "IPv6")[], withinMs?: number, everyMs?: number): Promise<void>;
  metrics(): Promise<string>;
  /** The status of a GET on the health server, and its body; null without a listener. */
  health(path?: "/healthz" | "/livez"): Promise<{ readonly status: number; readonly body: string } | null>;
};

const root = join(import.meta.dirname, "..", "..");
const apiAddress = { host: "127.0.0.1", port: 6443 };

/** null when the daemon can run here. */
export function reasonNotToRun(): string | null {
  return existsSync(join(root, "dist", "kube-proxy.cjs"))
    ? reasonToSkip()
    : "not built; build with: npm run build";
}

/** In a new namespace with one interface, or in an existing one. */
export async function openSite(given?: Namespace, apiOptions: ApiServerOptions = {}): Promise<Site> {
  const netns = given ?? createNode();
  const foothold = enter(netns);
  const folder = mkdtempSync(join(tmpdir(), "turnout-site-"));
  const api = new ApiServer(apiOptions);
  const file = (name: string, content: unknown): string => {
    writeFileSync(join(folder, name), JSON.stringify(content));
    return join(folder, name);
  };
  const tokenFile = join(folder, "token");
  file("kubeconfig.json", apiOptions.tls ? secureKubeconfig(tokenFile) : plainKubeconfig);
  writeFileSync(tokenFile, "none");
  const configure = (config: Configuration) => file("config.json", completed(config, folder));
  let count = 0;
  const start = ({
    config = {},
    program = "kube-proxy",
    args = [],
    by = [],
    env = {},
  }: Order = {}): Daemon => {
    const output = join(folder, `log-${++count}`);
    const [executable, ...verb] = program.split(" ") as [string, ...string[]];
    const line = [join(root, "bin", executable), ...verb, `--config=${configure(config)}`, "-v=2", ...args];
    return daemonOf(launch(netns, [...by, ...line], env, output), foothold, output);
  };
  return {
    netns,
    folder,
    api,
    openApi: async () => api.listen(await foothold.listen(apiAddress.host, apiAddress.port)),
    configure,
    pathWithout(programs) {
      const bin = join(folder, `bin-${++count}`);
      mkdirSync(bin);
      for (const name of startedPrograms.filter((each) => !programs.test(each))) {
        const found = netns.run("sh", "-c", `command -v ${name} || true`).trim();
        if (found !== "") symlinkSync(found, join(bin, name));
      }
      return bin;
    },
    start(order) {
      const daemon = start(order);
      running.add(daemon);
      return daemon;
    },
    async finish(order) {
      const daemon = start(order);
      return { code: await daemon.ended(), log: daemon.log() };
    },
    async close() {
      for (const daemon of running) {
        if (!daemon.running()) continue;
        daemon.kill("SIGKILL");
        await daemon.ended();
      }
      running.clear();
      await api.close();
      rmSync(folder, { recursive: true, force: true });
      if (given === undefined) netns.remove();
    },
  };
}

const running = new Set<Daemon>();

const startedPrograms = [
  ...["sh", "dirname", "readlink", "node", "cat", "nft"],
  ...["iptables", "ip6tables"].flatMap((name) => ["", "-save", "-restore"].map((end) => `${name}${end}`)),
];

/** This node's object, with both addresses and both pod networks by default. */
export function nodeObject(
  change: { labels?: object; addresses?: readonly string[]; podCIDRs?: readonly string[] } = {},
): KubeObject {
  const { labels = {}, addresses = nodeIPs, podCIDRs = ["10.180.0.0/24", "fd00:180::/64"] } = change;
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: nodeName, labels },
    spec: { podCIDRs, podCIDR: podCIDRs[0] },
    status: { addresses: addresses.map((address) => ({ type: "InternalIP", address })) },
  };
}

export const nodeIPs = [places.host, twin(places.host)] as const;

/** Tries until it is so. */
export async function eventually(
  isSo: () => boolean | Promise<boolean>,
  what: string,
  withinMs = 120_000,
  everyMs = 60,
) {
  for (const end = Date.now() + withinMs; !(await isSo()); await sleep(everyMs))
    if (Date.now() > end) throw new Error(`Not within ${withinMs} ms: ${what}`);
}

function createNode(): Namespace {
  const netns = createNamespace();
  netns.ip(
    "link set lo up",
    "link add eth0 type veth peer name wire",
    "link set eth0 up",
    "link set wire up",
    `addr add ${places.host}/24 dev eth0`,
    `addr add ${twin(places.host)}/64 dev eth0 nodad`,
  );
  return netns;
}

function launch(
  netns: Namespace,
  line: readonly string[],
  env: Readonly<Record<string, string>>,
  output: string,
): ChildProcess {
  const fd = openSync(output, "a");
  const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const child = spawn("ip", ["netns", "exec", netns.name, "env", ...settings, ...line], {
    stdio: ["ignore", fd, fd],
  });
  closeSync(fd);
  return child;
}

function daemonOf(child: ChildProcess, foothold: Foothold, output: string): Daemon {
  const gone = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  const log = () => readFileSync(output, "utf8");
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  const metrics = async () => (await foothold.get("http://127.0.0.1:10249/metrics")) ?? "";
  return {
    pid: child.pid!,
    log,
    metrics,
    running: isRunning,
    async ended() {
      const stop = new AbortController();
      const late = sleep(120_000, undefined, { signal: stop.signal }).then(() => {
        throw new Error(`Still running:\n${log()}`);
      });
      late.catch(() => {});
      return Promise.race([gone, late]).finally(() => stop.abort());
    },
    kill: (signal) => void child.kill(signal),
    async ready(families = ["IPv4", "IPv6"], withinMs?, everyMs?) {
      const hasSynced = async () => {
        if (!isRunning()) throw new Error(`Ended with ${child.exitCode}:\n${log()}`);
        const text = await metrics();
        return families.every(
          (family) =>
            sampleOf(text, `kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="${family}"}`) > 0,
        );
      };
      await eventually(hasSynced, "first Sync", withinMs, everyMs).catch((error: Error) => {
        throw new Error(`${error.message}\n${log()}`);
      });
    },
    health: (path = "/healthz") => httpGet(foothold.netns, `http://127.0.0.1:10256${path}`),
  };
}

/** The value of a sample, named with its labels as they are printed; 0 when it is missing. */
export function sampleOf(metrics: string, sample: string): number {
  const line = metrics.split("\n").find((each) => each.startsWith(`${sample} `));
  return Number(line?.slice(sample.length + 1) ?? 0);
}

const address = `${apiAddress.host}:${apiAddress.port}`;
const plainKubeconfig = kubeconfigOf({ server: `http://${address}` }, {});

/** A token is sent over TLS alone. */
function secureKubeconfig(tokenFile: string): object {
  const ca = Buffer.from(caCert).toString("base64");
  const cluster = {
    server: `https://${address}`,
    "certificate-authority-data": ca,
    "tls-server-name": "api.example",
  };
  return kubeconfigOf(cluster, { tokenFile });
}

function kubeconfigOf(cluster: object, user: object): object {
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster }],
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
    users: [{ name: "test", user }],
    "current-context": "test",
  };
}

function completed({ mode = "nftables", ...others }: Configuration, folder: string): object {
  const periods = { syncPeriod: "10s", minSyncPeriod: "10ms" };
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode,
    hostnameOverride: nodeName,
    clientConnection: { kubeconfig: join(folder, "kubeconfig.json"), qps: -1 },
    detectLocalMode: "ClusterCIDR",
    clusterCIDR: "10.180.0.0/16,fd00:180::/48",
    healthzBindAddress: "127.0.0.1:10256",
    metricsBindAddress: "127.0.0.1:10249",
    // Zeros leave nf_conntrack_max, the hash size and the time-outs of this machine alone.
    conntrack: {
      maxPerCore: 0,
      min: 0,
      tcpEstablishedTimeout: "0s",
      tcpCloseWaitTimeout: "0s",
      udpTimeout: "0s",
      udpStreamTimeout: "0s",
    },
    oomScoreAdj: 0,
    iptables: periods,
    nftables: periods,
    ...others,
  };
}
