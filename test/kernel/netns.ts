// Network namespaces for kernel tests: made, entered, used and removed; those of dead processes are swept away.
import { execFileSync } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setns } from "./libc.ts";

/** A network namespace that this process owns. */
export type Namespace = {
  readonly name: string;
  /** What `openSocket` and other functions accept as `netns`. */
  readonly path: string;
  /** Runs code inside. It must be synchronous: only this thread moves, and it moves back at the end. */
  inside<T>(work: () => T): T;
  /** Runs a program inside and gives what it prints; throws when it fails. */
  run(command: string, ...args: readonly string[]): string;
  /** The same with something on its standard input. */
  feed(input: string, command: string, ...args: readonly string[]): string;
  /** Runs a list of `ip` commands, one in a line. */
  ip(...lines: readonly string[]): void;
  /** Sets sysctls of this namespace: `net.ipv4.ip_forward` → 1. */
  sysctl(values: Readonly<Record<string, string | number>>): void;
  remove(): void;
  /** Closes its file; the namespace remains. */
  close(): void;
};

const folder = "/run/netns";
const prefix = "tt-";
let count = 0;
let swept = false;

/** Kernel tests are skipped when this is false. */
export const isRoot = process.getuid?.() === 0;

/** Creates a namespace whose name contains its owner: `tt-<pid>-<label>`. */
export function createNamespace(label: string = String(++count)): Namespace {
  return createNamespaces([label])[0]!;
}

/** The same for several, which takes one run of `ip`; when one cannot be created, none is left. */
export function createNamespaces(labels: readonly string[]): Namespace[] {
  if (!swept) sweepNamespaces();
  swept = true;
  const names = labels.map((label) => `${prefix}${process.pid}-${label}`);
  const before = new Set(allNames());
  try {
    runIp(names.map((name) => `netns add ${name}`));
  } catch (error) {
    runIp(names.filter((name) => !before.has(name) && existsSync(join(folder, name))).map(deletion));
    throw error;
  }
  return names.map(namespaceOf);
}

export function removeNamespaces(list: readonly Namespace[]): void {
  for (const netns of list) netns.close();
  runIp(list.map(({ name }) => deletion(name)));
}

const deletion = (name: string) => `netns delete ${name}`;

function runIp(lines: readonly string[]): void {
  if (lines.length === 0) return;
  execFileSync("ip", ["-batch", "-"], { input: lines.join("\n"), stdio: "pipe" });
}

function namespaceOf(name: string): Namespace {
  const path = join(folder, name);
  const fd = openSync(path, "r");
  const inside = <T>(work: () => T): T => within(fd, work);
  // A child begins where the thread is that starts it. `ip netns exec` would also mount a /sys of its own, each time.
  const feed = (input: string, command: string, ...args: readonly string[]): string =>
    inside(() =>
      execFileSync(command, args, {
        input,
        encoding: "utf8",
        stdio: ["pipe", "pipe", "pipe"],
        maxBuffer: 256 * 1024 * 1024,
      }),
    );
  return {
    name,
    path,
    close: () => closeSync(fd),
    inside,
    feed,
    run: (command, ...args) => feed("", command, ...args),
    ip: (...lines) => void feed(lines.join("\n"), "ip", "-batch", "-"),
    sysctl: (values) =>
      inside(() => {
        for (const [key, value] of Object.entries(values)) setSysctl(key, value);
      }),
    remove() {
      closeSync(fd);
      execFileSync("ip", ["netns", "delete", name]);
    },
  };
}

/** Names of the namespaces that this process made and has not removed. */
export function ownNamespaceNames(): string[] {
  return allNames().filter((name) => name.startsWith(`${prefix}${process.pid}-`));
}

/** Removes what is left of test processes that died: their namespaces, and the programs they had started in them. */
export function sweepNamespaces(): void {
  for (const name of allNames()) {
    const owner = /^tt-(\d+)-/.exec(name)?.[1];
    if (owner === undefined || existsSync(`/proc/${owner}`)) continue;
    try {
      for (const pid of processesIn(name)) killIfThere(pid);
      execFileSync("ip", ["netns", "delete", name], { stdio: "pipe" });
    } catch (error) {
      // Other test processes sweep too.
      if (existsSync(join(folder, name))) throw error;
    }
  }
}

/** The programs that run inside. */
export function processesIn(name: string): number[] {
  return (execFileSync("ip", ["netns", "pids", name], { encoding: "utf8" }).match(/\d+/g) ?? []).map(Number);
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

/** null when kernel tests can run here; else why they cannot. */
export function reasonToSkip(): string | null {
  if (!isRoot) return "needs root on Linux";
  try {
    createNamespace("probe").remove();
    return null;
  } catch (error) {
    return `cannot make network namespaces: ${(error as Error).message}`;
  }
}

const home = existsSync("/proc/thread-self/ns/net") ? openSync("/proc/thread-self/ns/net", "r") : -1;

function within<T>(fd: number, work: () => T): T {
  setns(fd);
  try {
    return work();
  } finally {
    setns(home);
  }
}

function allNames(): string[] {
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith(prefix)) : [];
}

/** Sysctls that this kernel does not have are left out: the tests then rely on its defaults. */
function setSysctl(key: string, value: string | number): void {
  const file = join("/proc/sys", ...key.split("."));
  if (existsSync(file)) writeFileSync(file, String(value));
}
