// Breaks something while requests are sent to a Service at a steady rate, and counts those that fail.
import { setTimeout as sleep } from "node:timers/promises";
import type { NodeCluster } from "./cluster.ts";
import { changeMode, type Installed, type InstallOptions, rollOut } from "./install.ts";
import type { ProxyMode } from "./kubeadm.ts";
import { nodeNames } from "./lan.ts";
import type { Machine } from "./machine.ts";
import type { Count } from "./requests.ts";
import { deployment, forgetConnections, fromOutside, fromPod, removeWeb, startWeb } from "./web.ts";

export type Failures = {
  readonly disturbance: string;
  readonly pod: Count;
  readonly outside: Count;
  /** Why it could not be done; absent: it was done. */
  readonly problem?: string;
};

type Disturbance = {
  readonly name: string;
  /** How long requests are sent after it has ended. */
  readonly seconds: number;
  run(installed: Installed, options: InstallOptions): void | Promise<void>;
};

// Longer than the sync period of 30 s, after which kube-proxy checks its rules in iptables mode.
const repairSeconds = 40;

const disturbances: readonly Disturbance[] = [
  {
    name: "rules flushed",
    seconds: repairSeconds,
    run: ({ mode }, { cluster }) =>
      onNodes(cluster, (machine) => {
        for (const table of tablesOf[mode]) machine.run("nft", "flush", "table", ...table);
      }),
  },
  {
    name: "tables deleted",
    seconds: repairSeconds,
    run: ({ mode }, { cluster }) =>
      onNodes(cluster, (machine) => {
        for (const table of tablesOf[mode]) machine.run("nft", "delete", "table", ...table);
      }),
  },
  {
    name: "`nft flush ruleset`",
    seconds: repairSeconds,
    run: (_, { cluster }) => onNodes(cluster, (machine) => machine.run("nft", "flush", "ruleset")),
  },
  {
    name: "proxy killed with -9",
    seconds: 15,
    run: ({ daemonSet }, { cluster }) => onNodes(cluster, (machine) => kill(machine, daemonSet)),
  },
  {
    name: "DaemonSet rolled",
    seconds: 5,
    run({ daemonSet }, { cluster }) {
      cluster.kubectl(["-n", "kube-system", "rollout", "restart", `daemonset/${daemonSet}`]);
      rollOut(cluster, daemonSet);
    },
  },
  {
    name: "Deployment rolled",
    seconds: 15,
    run(_, { cluster: { kubectl } }) {
      kubectl(["rollout", "restart", ...deployment]);
      kubectl(["rollout", "status", ...deployment, "--timeout=3m"]);
    },
  },
  {
    name: "API server stopped for a minute",
    seconds: 15,
    async run(_, { cluster: { plane } }) {
      await plane.stopApiServer();
      await sleep(60_000);
      await plane.startApiServer();
    },
  },
  {
    name: "mode changed, and back",
    seconds: 5,
    async run(installed, options) {
      for (const mode of [otherMode[installed.mode], installed.mode]) {
        changeMode(installed, { ...options, mode });
        for (const name of nodeNames) await inMode(options.cluster.machines[name], mode);
      }
    },
  },
];

const tablesOf: Readonly<Record<ProxyMode, readonly (readonly string[])[]>> = {
  nftables: tables("kube-proxy"),
  iptables: [...tables("nat"), ...tables("filter")],
  userspace: [],
};

const otherMode = { nftables: "iptables", iptables: "nftables", userspace: "nftables" } as const;

/** Each disturbance starts with a Service that works and without tracked connections: where it still fails after one, the proxy is restarted. */
export async function disturb(
  installed: Installed,
  options: InstallOptions,
  focus: RegExp,
  onResult: (failures: Failures) => void,
): Promise<readonly Failures[]> {
  const { cluster } = options;
  startWeb(cluster);
  try {
    const found: Failures[] = [];
    for (const disturbance of disturbances.filter(({ name }) => focus.test(name))) {
      forgetConnections(cluster);
      const failures = await measured(cluster, disturbance.name, disturbance.seconds, () =>
        disturbance.run(installed, options),
      );
      onResult(failures);
      found.push(failures);
      if (!isServed(failures)) await restart(cluster, installed);
    }
    return found;
  } finally {
    removeWeb(cluster);
  }
}

async function measured(
  cluster: NodeCluster,
  disturbance: string,
  seconds: number,
  work: () => void | Promise<void>,
): Promise<Failures> {
  const pod = fromPod(cluster);
  const outside = fromOutside(cluster);
  await sleep(2000);
  const problem = await problemOf(work);
  await sleep(seconds * 1000);
  const [fromAPod, fromTheOutside] = await Promise.all([pod.stop(), outside.stop()]);
  return { disturbance, pod: fromAPod, outside: fromTheOutside, ...(problem !== null && { problem }) };
}

/** A disturbance that cannot be done must not cost the results of an hour. */
async function problemOf(work: () => void | Promise<void>): Promise<string | null> {
  try {
    await work();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

async function restart(cluster: NodeCluster, { daemonSet }: Installed): Promise<void> {
  const deadline = Date.now() + 180_000;
  while (Date.now() < deadline) {
    cluster.kubectl(["-n", "kube-system", "rollout", "restart", `daemonset/${daemonSet}`]);
    rollOut(cluster, daemonSet);
    if (isServed(await measured(cluster, "none", 1, () => undefined))) return;
  }
  throw new Error("the Service does not work, although the proxy was restarted");
}

function isServed({ pod, outside }: Failures): boolean {
  return pod.served && outside.served;
}

function onNodes({ machines }: NodeCluster, work: (machine: Machine) => void): void {
  for (const name of nodeNames) work(machines[name]);
}

function kill(machine: Machine, pods: string): void {
  for (const { id } of machine.tasks(pods))
    machine.run("ctr", "-n", "k8s.io", "tasks", "kill", "-s", "9", id);
}

/**
 * Waits until the proxy of a node reports this mode. The kubelet may start the new pod with the ConfigMap it had before, and updates
 * the file up to a minute and a half later; both proxies then restart.
 */
async function inMode(machine: Machine, mode: ProxyMode): Promise<void> {
  const deadline = Date.now() + 180_000;
  let found = "";
  while (found !== mode) {
    if (Date.now() > deadline)
      throw new Error(`the proxy of ${machine.name} is in mode "${found}", not ${mode}`);
    await sleep(500);
    // Nothing listens while the pod is replaced.
    found = machine.run("sh", "-c", "busybox wget -qO- http://127.0.0.1:10249/proxyMode 2>/dev/null || true");
  }
}

function tables(name: string): readonly (readonly string[])[] {
  return [
    ["ip", name],
    ["ip6", name],
  ];
}
