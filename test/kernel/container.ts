// A container in the network namespace of a test node, run by runc as the kubelet would run one of our pods: the programs of
// this checkout at the paths of the image, and the security context, volumes and environment of a manifest.
import { execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Namespace } from "./netns.ts";

/** The part of a pod that matters here. */
export type PodSpec = {
  readonly containers: readonly ContainerSpec[];
  readonly volumes: readonly { readonly name: string; readonly emptyDir?: object }[];
};

type ContainerSpec = {
  readonly command: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly securityContext?: {
    readonly privileged?: boolean;
    readonly readOnlyRootFilesystem?: boolean;
    readonly capabilities?: { readonly add?: readonly string[] };
  };
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
};

export type Container = {
  log(): string;
  running(): boolean;
  /** Runs a command line in it, as `kubectl exec` does. */
  readonly exec: (...line: readonly string[]) => Promise<Executed>;
  remove(): void;
};

export type Executed = { readonly code: number; readonly out: string; readonly err: string };

/** null where containers can be run. */
export function reasonNotToContain(): string | null {
  const { status } = spawnSync("runc", ["--version"]);
  return status === 0 ? null : "runc is not installed; install it with: apt-get install runc";
}

const checkout = join(import.meta.dirname, "..", "..");

/** `folder` is for files of the container; `volumes`: what is mounted for each volume that is not an emptyDir. */
export function runContainer(
  netns: Namespace,
  folder: string,
  pod: PodSpec,
  volumes: Readonly<Record<string, string>>,
): Container {
  const [container] = pod.containers as [ContainerSpec];
  const bundle = join(folder, "bundle");
  makeRoot(bundle);
  const id = `turnout-test-${process.pid}-${Date.now()}`;
  writeFileSync(
    join(bundle, "config.json"),
    JSON.stringify(configOf(netns, folder, container, pod, volumes)),
  );
  const output = openSync(join(folder, "container.log"), "a");
  const state = ["--root", join(folder, "state")];
  const child = spawn("runc", [...state, "run", "--bundle", bundle, id], {
    stdio: ["ignore", output, output],
  });
  closeSync(output);
  return {
    log: () => readFileSync(join(folder, "container.log"), "utf8"),
    running: () => child.exitCode === null && child.signalCode === null,
    // Asynchronous, because the API server of the test runs in this process.
    exec: (...line) =>
      promisify(execFile)("runc", [...state, "exec", id, ...line]).then(
        ({ stdout, stderr }) => ({ code: 0, out: stdout, err: stderr }),
        ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
          code,
          out: stdout,
          err: stderr,
        }),
      ),
    remove() {
      execFileSync("runc", [...state, "delete", "--force", id]);
    },
  };
}

/** The layout of the image, with the machine's /usr in place of its packages. */
function makeRoot(bundle: string): void {
  const root = join(bundle, "rootfs");
  for (const name of ["usr", "proc", "sys", "dev", "tmp", "run", "opt/turnout", "etc", "lib/modules", "var"])
    if (!name.startsWith("lib/")) mkdirSync(join(root, name), { recursive: true });
  for (const name of ["bin", "sbin", "lib", "lib64"]) symlinkSync(`usr/${name}`, join(root, name));
  for (const name of ["bin", "dist", "node_modules"]) mkdirSync(join(root, "opt/turnout", name));
  const local = join(bundle, "local-bin");
  mkdirSync(local);
  for (const name of ["kube-proxy", "turnout"]) symlinkSync(`/opt/turnout/bin/${name}`, join(local, name));
}

function configOf(
  netns: Namespace,
  folder: string,
  container: ContainerSpec,
  pod: PodSpec,
  volumes: Readonly<Record<string, string>>,
): object {
  const {
    privileged = false,
    readOnlyRootFilesystem = false,
    capabilities,
  } = container.securityContext ?? {};
  const names = privileged ? allCapabilities() : (capabilities?.add ?? []).map((name) => `CAP_${name}`);
  const env = (container.env ?? []).map(({ name, value = "node-under-test" }) => `${name}=${value}`);
  const filled = (text: string) =>
    text.replace(
      /\$\((\w+)\)/g,
      (_, name: string) => env.find((each) => each.startsWith(`${name}=`))!.split("=")[1]!,
    );
  return {
    ociVersion: "1.0.2",
    process: {
      user: { uid: 0, gid: 0 },
      args: [...container.command, ...(container.args ?? [])].map(filled),
      env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", ...env],
      cwd: "/",
      capabilities: { bounding: names, effective: names, permitted: names },
      noNewPrivileges: !privileged,
    },
    root: { path: "rootfs", readonly: readOnlyRootFilesystem },
    mounts: [
      ...systemMounts(privileged),
      ...imageMounts(folder),
      ...volumeMounts(folder, container, pod, volumes),
    ],
    linux: {
      namespaces: [
        ...["pid", "mount", "ipc"].map((type) => ({ type })),
        { type: "network", path: `/run/netns/${netns.name}` },
      ],
      ...(privileged ? {} : { readonlyPaths: ["/proc/sys"] }),
    },
  };
}

function systemMounts(privileged: boolean): object[] {
  return [
    { destination: "/proc", type: "proc", source: "proc" },
    { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755"] },
    { destination: "/sys", type: "sysfs", source: "sysfs", options: privileged ? [] : ["ro"] },
  ];
}

function imageMounts(folder: string): object[] {
  const bound = (source: string, destination: string) => bind(source, destination, true);
  return [
    bound("/usr", "/usr"),
    // Debian's iptables is a link to it.
    bound("/etc/alternatives", "/etc/alternatives"),
    bound(join(folder, "bundle", "local-bin"), "/usr/local/bin"),
    ...["bin", "dist", "node_modules"].map((name) => bound(join(checkout, name), `/opt/turnout/${name}`)),
  ];
}

function volumeMounts(
  folder: string,
  { volumeMounts: mounts = [] }: ContainerSpec,
  pod: PodSpec,
  volumes: Readonly<Record<string, string>>,
): object[] {
  return mounts.map(({ name, mountPath, readOnly = false }) => {
    const { emptyDir } = pod.volumes.find((volume) => volume.name === name)!;
    if (emptyDir === undefined) return bind(volumes[name]!, mountPath, readOnly);
    // The kubelet gives everyone access to the directory.
    const source = join(folder, `volume-${name}`);
    mkdirSync(source, { mode: 0o777 });
    execFileSync("chmod", ["0777", source]);
    return bind(source, mountPath, readOnly);
  });
}

function bind(source: string, destination: string, readOnly: boolean): object {
  return { destination, type: "bind", source, options: ["rbind", ...(readOnly ? ["ro"] : [])] };
}

/** By bit, from CAP_CHOWN on. */
const capabilityNames =
  "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN".split(
    " ",
  );

/** All that this machine has: a virtual machine may lack some. */
function allCapabilities(): string[] {
  const [, hex = "0"] = /^CapBnd:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  const held = BigInt(`0x${hex}`);
  return capabilityNames.filter((_, bit) => (held & (1n << BigInt(bit))) !== 0n).map((name) => `CAP_${name}`);
}
