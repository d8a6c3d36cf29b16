// Sends requests to a Service at a steady rate while something is broken, and counts those that fail.
import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { NodeCluster } from "./cluster.ts";
import { imageNames } from "./images.ts";
import type { Installed } from "./install.ts";
import { rollOut } from "./install.ts";
import { addresses, nodeNames } from "./lan.ts";

export type Failures = {
  readonly disturbance: string;
  /** Failed of sent, from a pod to the cluster IP and from outside to the node port. */
  readonly pod: Count;
  readonly outside: Count;
};

export type Count = { readonly sent: number; readonly failed: number };

const rate = 50;
const nodePort = 30_080;
const clusterIP = "172.30.0.80";

type Disturbance = {
  readonly name: string;
  /** How long requests go on after it was started. */
  readonly seconds: number;
  run(cluster: NodeCluster, installed: Installed): void | Promise<void>;
};

export const disturbances: readonly Disturbance[] = [
  {
    name: "all rules flushed",
    seconds: 15,
    run: ({ machines }) => each((name) => machines[name].run("nft", "flush", "ruleset")),
  },
  {
    name: "the proxy's table deleted",
    seconds: 15,
    run: ({ machines }, { mode }) =>
      each((name) => {
        const tables = mode === "nftables" ? ["ip kube-proxy", "ip6 kube-proxy"] : ["ip nat", "ip filter"];
        for (const table of tables)
          machines[name].run("sh", "-c", `nft delete table ${table} 2>/dev/null || true`);
      }),
  },
  {
    name: "daemon killed with -9",
    seconds: 15,
    run: ({ machines }) => each((name) => machines[name].run("pkill", "-9", "-f", "kube-proxy|turnout.cjs")),
  },
  {
    name: "DaemonSet rolled",
    seconds: 5,
    run(cluster, { daemonSet }) {
      cluster.kubectl(["-n", "kube-system", "rollout", "restart", `daemonset/${daemonSet}`]);
      rollOut(cluster, daemonSet);
    },
  },
  {
    name: "Deployment rolled",
    seconds: 5,
    run({ kubectl }) {
      kubectl(["-n", "chaos", "rollout", "restart", "deployment/web"]);
      kubectl(["-n", "chaos", "rollout", "status", "deployment/web", "--timeout=3m"]);
    },
  },
  {
    name: "API server stopped for a minute",
    seconds: 5,
    async run({ plane }) {
      await plane.stopApiServer();
      await sleep(60_000);
      await plane.startApiServer();
    },
  },
];

export async function disturb(cluster: NodeCluster, installed: Installed): Promise<readonly Failures[]> {
  start(cluster);
  try {
    const found: Failures[] = [];
    for (const disturbance of disturbances) found.push(await measured(cluster, installed, disturbance));
    return found;
  } finally {
    cluster.kubectl(["delete", "namespace", "chaos", "--wait=true"]);
  }
}

async function measured(
  cluster: NodeCluster,
  installed: Installed,
  disturbance: Disturbance,
): Promise<Failures> {
  const pod = fromPod(cluster);
  const outside = fromOutside(cluster);
  await sleep(2000);
  await disturbance.run(cluster, installed);
  await sleep(disturbance.seconds * 1000);
  return { disturbance: disturbance.name, pod: await pod.stop(), outside: await outside.stop() };
}

function each(work: (name: (typeof nodeNames)[number]) => unknown): void {
  for (const name of nodeNames) work(name);
}

/** Two servers on each node, and a client pod; the servers end as well-behaved ones do. */
function start({ kubectl }: NodeCluster): void {
  const labels = { app: "web" };
  const items = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "chaos" } },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "web", namespace: "chaos" },
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
      metadata: { name: "web", namespace: "chaos" },
      spec: {
        replicas: 4,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            terminationGracePeriodSeconds: 20,
            topologySpreadConstraints: [
              {
                maxSkew: 1,
                topologyKey: "kubernetes.io/hostname",
                whenUnsatisfiable: "DoNotSchedule",
                labelSelector: { matchLabels: labels },
              },
            ],
            containers: [
              {
                name: "web",
                image: imageNames.agnhost,
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
      metadata: { name: "client", namespace: "chaos" },
      spec: {
        nodeName: nodeNames[0],
        containers: [{ name: "client", image: imageNames.agnhost, args: ["pause"] }],
      },
    },
  ];
  kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  kubectl(["-n", "chaos", "rollout", "status", "deployment/web", "--timeout=3m"]);
  kubectl(["-n", "chaos", "wait", "--for=condition=Ready", "pod/client", "--timeout=3m"]);
}

type Sender = { stop(): Promise<Count> };

/** The client enters the pod's network namespace: it must not depend on the API server that a disturbance stops. */
function fromPod(cluster: NodeCluster): Sender {
  const machine = cluster.machines[nodeNames[0]!];
  const id = machine
    .run("sh", "-c", "ctr -n k8s.io containers ls -q 'labels.\"io.kubernetes.pod.name\"==client'")
    .trim()
    .split("\n")[0]!;
  const pid = machine.run("sh", "-c", `ctr -n k8s.io tasks ls | awk '$1 == "${id}" { print $2 }'`).trim();
  const netns = `/proc/${machine.firstProcess()}/root/proc/${pid}/ns/net`;
  return startSender(["nsenter", `--net=${netns}`, "--"], `${clusterIP}:80`);
}

function fromOutside(cluster: NodeCluster): Sender {
  const at = `${addresses[nodeNames[1]!]}:${nodePort}`;
  return startSender(["nsenter", `--net=${cluster.lan.outside.path}`, "--"], at);
}

function startSender(enter: readonly string[], to: string): Sender {
  const [command, ...args] = [...enter, process.execPath, "-e", sending, to, String(rate)];
  const child: ChildProcess = spawn(command!, args, { stdio: ["pipe", "pipe", "inherit"] });
  let output = "";
  child.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
    output += chunk;
  });
  const ended = new Promise((resolve) => child.once("close", resolve));
  return {
    async stop() {
      child.stdin!.end();
      await ended;
      return JSON.parse(output) as Count;
    },
  };
}

// A new connection for each request; one that takes longer than a second has failed.
const sending = `
const { get, Agent } = require("node:http");
const [, to, rate] = process.argv;
const agent = new Agent({ keepAlive: false });
let sent = 0, failed = 0, open = 0, ending = false;
const finish = () => { if (ending && open === 0) { console.log(JSON.stringify({ sent, failed })); process.exit(0); } };
const send = () => {
  sent++; open++;
  let done = false;
  const end = (ok) => { if (done) return; done = true; open--; if (!ok) failed++; finish(); };
  const request = get("http://" + to + "/hostname", { agent, timeout: 1000 }, (response) => {
    response.resume();
    response.on("end", () => end(response.statusCode === 200));
    response.on("error", () => end(false));
  });
  request.on("timeout", () => { end(false); request.destroy(); });
  request.on("error", () => end(false));
};
const timer = setInterval(send, 1000 / Number(rate));
process.stdin.resume();
process.stdin.on("end", () => { clearInterval(timer); ending = true; finish(); });
`;
