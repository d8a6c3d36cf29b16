// One node of the test cluster: containerd and the kubelet with files, mounts, processes and network of their own.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { stringify } from "yaml";
import { writeKubeconfig } from "../cluster/control-plane.ts";
import type { Namespace } from "../kernel/netns.ts";
import { twin } from "../places.ts";
import { cgroupName, createCgroup, removeCgroup } from "./cgroup.ts";
import { addresses, type NodeName, podNetworks } from "./lan.ts";
import type { Plane } from "./plane.ts";

export type Machine = {
  readonly name: NodeName;
  /** Runs a program on the node; returns what it prints. */
  run(command: string, ...args: readonly string[]): string;
  /** Its first process, as seen from outside. */
  firstProcess(): string;
  /** What runs in containers of this name: their id, and their process as seen from the node. */
  tasks(container: string): readonly Task[];
  log(program: "containerd" | "kubelet" | "images"): string;
  close(): Promise<void>;
};

export type Task = { readonly id: string; readonly pid: string };

export const clusterDNS = "172.30.0.10";
export const pauseImage = "registry.k8s.io/pause:3.10.2";

export type MachineOptions = {
  readonly name: NodeName;
  readonly netns: Namespace;
  readonly plane: Plane;
  readonly kubelet: string;
  /** A folder for what the node writes. */
  readonly folder: string;
  /** Image archives that containerd imports. */
  readonly images: readonly string[];
};

export function startMachine({ name, netns, plane, kubelet, folder, images }: MachineOptions): Machine {
  const cgroup = cgroupName(name);
  createCgroup(cgroup);
  mkdirSync(join(folder, "images"), { recursive: true });
  mkdirSync(join(folder, "cni"), { recursive: true });
  for (const image of images) copyFileSync(image, join(folder, "images", basename(image)));
  const { cert, key } = plane.pki.client(name, `/O=system:nodes/CN=system:node:${name}`);
  for (const [from, to] of [
    [plane.pki.ca, "ca.crt"],
    [cert, "kubelet.crt"],
    [key, "kubelet.key"],
  ] as const)
    copyFileSync(from, join(folder, to));
  writeKubeconfig(join(folder, "kubeconfig"), "/node/ca.crt", plane.url, {
    "client-certificate": "/node/kubelet.crt",
    "client-key": "/node/kubelet.key",
  });
  const write = (file: string, text: string): void => writeFileSync(join(folder, file), text);
  write("containerd.toml", containerdConfig);
  write("cni/10-pods.conflist", JSON.stringify(cniConfig(name), null, 2));
  write("kubelet.yaml", stringify(kubeletConfig(cgroup)));
  const args = [
    "--config=/node/kubelet.yaml",
    "--kubeconfig=/node/kubeconfig",
    `--hostname-override=${name}`,
    `--node-ip=${addresses[name]},${twin(addresses[name])}`,
    "--v=2",
  ];
  write("kubelet.args", args.join("\n"));
  const child = spawn(
    "nsenter",
    [
      ...[
        `--net=${netns.path}`,
        "--",
        "unshare",
        "--mount",
        "--pid",
        "--uts",
        "--ipc",
        "--fork",
        "--kill-child",
      ],
      ...["sh", join(import.meta.dirname, "machine.sh"), name, folder, kubelet],
    ],
    { stdio: ["ignore", "inherit", "inherit"] },
  );
  const run: Machine["run"] = (command, ...rest) => runOn(firstProcess(child), command, rest);
  return {
    name,
    run,
    firstProcess: () => firstProcess(child),
    tasks: (container) => tasksOf(run, container),
    log: (program) => readFileSync(join(folder, `${program}.log`), "utf8"),
    async close() {
      if (child.exitCode === null && child.signalCode === null) {
        const gone = new Promise((resolve) => child.once("exit", resolve));
        child.kill("SIGKILL");
        await gone;
      }
      await removeCgroup(cgroup);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The child of `unshare`. */
function firstProcess({ pid }: ChildProcess): string {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")[0]!;
}

function runOn(first: string, command: string, args: readonly string[]): string {
  const into = ["--target", first, "--mount", "--net", "--pid", "--uts", "--root"];
  return execFileSync("nsenter", [...into, "--", "env", "--chdir=/", command, ...args], {
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
}

function tasksOf(run: Machine["run"], container: string): readonly Task[] {
  const ctr = (...args: readonly string[]): string => run("ctr", "-n", "k8s.io", ...args);
  const label = `labels."io.kubernetes.container.name"==${container}`;
  const ids = new Set(ctr("containers", "ls", "--quiet", label).trim().split("\n"));
  return ctr("tasks", "ls")
    .split("\n")
    .map((line) => line.split(/\s+/))
    .flatMap(([id = "", pid = "", state]) => (ids.has(id) && state === "RUNNING" ? [{ id, pid }] : []));
}

const containerdConfig = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  restrict_oom_score_adj = true
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/node/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`;

function cniConfig(name: NodeName): object {
  const subnets = [podNetworks[name], twin(podNetworks[name])];
  return {
    cniVersion: "0.4.0",
    name: "pods",
    plugins: [
      {
        type: "ptp",
        mtu: 1500,
        ipam: {
          type: "host-local",
          ranges: subnets.map((subnet) => [{ subnet }]),
          routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
          dataDir: "/run/cni-addresses",
        },
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  };
}

function kubeletConfig(cgroup: string): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    authentication: { anonymous: { enabled: false }, x509: { clientCAFile: "/node/ca.crt" } },
    authorization: { mode: "Webhook" },
    cgroupDriver: "cgroupfs",
    cgroupRoot: `/${cgroup}`,
    failCgroupV1: false,
    failSwapOn: false,
    containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
    clusterDNS: [clusterDNS],
    clusterDomain: "cluster.local",
    resolvConf: "/node/resolv.conf",
    // The machine's disk and memory are shared with what else runs on it.
    evictionHard: { "memory.available": "100Mi", "nodefs.available": "0%", "imagefs.available": "0%" },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    enforceNodeAllocatable: [],
    serializeImagePulls: false,
    maxPods: 200,
    // How often a pod's files follow its ConfigMaps, which a change of mode waits for; a minute by default.
    syncFrequency: "10s",
    registryPullQPS: 0,
  };
}
