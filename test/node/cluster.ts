// The test cluster: one control plane and three nodes with real kubelets and containers, all in namespaces of this process.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { twin } from "../places.ts";
import { sweepCgroups } from "./cgroup.ts";
import { createLan, type Lan, type NodeName, nodeNames, podNetworks } from "./lan.ts";
import { type Machine, startMachine } from "./machine.ts";
import { type Plane, startPlane } from "./plane.ts";

export type ClusterPrograms = Readonly<
  Record<
    "etcd" | "kube-apiserver" | "kube-controller-manager" | "kube-scheduler" | "kubelet" | "kubectl",
    string
  >
>;

export type NodeCluster = {
  readonly lan: Lan;
  readonly plane: Plane;
  readonly machines: Readonly<Record<NodeName, Machine>>;
  /** Runs kubectl as cluster administrator, with something on its standard input if given. */
  readonly kubectl: (args: readonly string[], input?: string) => string;
  /** Runs a program where the API server is reachable. */
  readonly runAtPlane: (command: string, ...args: readonly string[]) => string;
  close(): Promise<void>;
};

export async function startCluster(
  programs: ClusterPrograms,
  images: readonly string[],
): Promise<NodeCluster> {
  await sweepCgroups();
  const folder = mkdtempSync(join(tmpdir(), "turnout-node-"));
  const closers: (() => void | Promise<void>)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const close = async (): Promise<void> => {
    for (const each of closers.toReversed()) await each();
  };
  try {
    const lan = createLan();
    closers.push(() => lan.close());
    const plane = await startPlane(lan.plane, join(folder, "plane"), programs);
    closers.push(() => plane.close());
    const start = (name: NodeName): Machine => {
      const own = join(folder, name);
      mkdirSync(own);
      // Pods resolve names through the cluster's DNS, which has no server above it.
      writeFileSync(join(own, "resolv.conf"), "");
      const { kubelet } = programs;
      const machine = startMachine({ name, netns: lan.nodes[name], plane, kubelet, folder: own, images });
      closers.push(() => machine.close());
      return machine;
    };
    const machines = { "node-a": start("node-a"), "node-b": start("node-b"), "node-c": start("node-c") };
    const run = (input: string, command: string, args: readonly string[]): string =>
      execFileSync("nsenter", [`--net=${lan.plane.path}`, "--", command, ...args], {
        input,
        encoding: "utf8",
        maxBuffer: 2 ** 28,
      });
    const kubectl = (args: readonly string[], input = ""): string =>
      run(input, programs.kubectl, [`--kubeconfig=${plane.admin}`, ...args]);
    const runAtPlane = (command: string, ...args: readonly string[]): string => run("", command, args);
    await registered(plane);
    return { lan, plane, machines, kubectl, runAtPlane, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Waits for both Nodes and gives them their pod networks. */
async function registered({ api }: Plane): Promise<void> {
  for (const name of nodeNames) {
    const podCIDRs = [podNetworks[name], twin(podNetworks[name])];
    const deadline = Date.now() + 180_000;
    while (Date.now() < deadline) {
      const { code } = await api("PATCH", `/api/v1/nodes/${name}`, {
        metadata: { labels: { "topology.kubernetes.io/zone": `zone-of-${name}` } },
        spec: { podCIDR: podCIDRs[0], podCIDRs },
      });
      if (code === 200) break;
      await sleep(500);
    }
    for (;;) {
      const { body } = await api("GET", `/api/v1/nodes/${name}`);
      const conditions: { type: string; status: string; message: string }[] = body.status?.conditions ?? [];
      const ready = conditions.find(({ type }) => type === "Ready");
      if (ready?.status === "True") break;
      if (Date.now() > deadline)
        throw new Error(`${name} did not get ready: ${ready?.message ?? "not registered"}`);
      await sleep(500);
    }
  }
}
