// Network namespaces of the playground: named after their owner, entered, and removed, also by the next start.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  isAlive,
  namePattern,
  namespaceFolder,
  stateFolder,
  statePath,
} from "../../src/inspect/playgrounds.ts";
import { environmentOf } from "../../src/model/environment.ts";
import { CannotStart } from "../cannot-start.ts";

/** `ip` commands by the namespace they are for, in order. */
export type Commands = ReadonlyMap<string, readonly string[]>;

const hasIPv6 = existsSync("/proc/net/if_inet6");

/** Makes namespaces. */
export function addNamespaces(names: readonly string[]): void {
  batch(
    [],
    names.map((name) => `netns add ${name}`),
  );
}

/** One process for each namespace; a machine without IPv6 gets the rest. */
export function ip(commands: Commands): void {
  for (const [netns, lines] of commands)
    batch(
      ["-n", netns],
      lines.filter((line) => hasIPv6 || !line.includes("::")),
    );
}

function batch(options: readonly string[], lines: readonly string[]): void {
  try {
    runIp([...options, "-batch", "-"], `${lines.join("\n")}\n`);
  } catch (error) {
    const { code, stderr } = error as NodeJS.ErrnoException & { stderr?: string };
    if (code === "ENOENT")
      throw new CannotStart(
        "Cannot run ip: it is not installed; on Debian: apt-get install iproute2 nftables",
      );
    throw new CannotStart(`Cannot make the network: ip says ${JSON.stringify(String(stderr).trim())}`);
  }
}

/** In a session of its own: Ctrl-C is for us alone, and must not leave a network half made. */
function runIp(args: readonly string[], input = ""): string {
  const env = environmentOf(process.env);
  const options = { input, stdio: "pipe", encoding: "utf8", detached: true, env } as const;
  return execFileSync("ip", args, options);
}

/** Removes what playgrounds that died left behind; gives the number of namespaces removed. */
export function removeStale(): number {
  const stale = existsSync(namespaceFolder)
    ? readdirSync(namespaceFolder).filter((name) => isStale(namePattern.exec(name)?.[1]))
    : [];
  for (const name of stale) removeNamespace(name);
  if (existsSync(stateFolder)) {
    for (const name of readdirSync(stateFolder)) {
      if (isStale(/^(\d+)$/.exec(name)?.[1])) rmSync(join(stateFolder, name), { recursive: true });
    }
  }
  return stale.length;
}

/** Runs a shell script in a namespace. */
export function runScriptIn(name: string, script: string): void {
  runIp(["netns", "exec", name, "sh", "-c", script]);
}

/** Ends the processes inside and removes the namespace. */
export function removeNamespace(name: string): void {
  if (!existsSync(join(namespaceFolder, name))) return;
  const pids = runIp(["netns", "pids", name]).split("\n").map(Number);
  for (const pid of pids.filter((each) => each > 1 && each !== process.pid)) endProcess(pid);
  runIp(["netns", "delete", name]);
}

/**
 * Starts a small shell that outlives us, however we end: when its input closes, it removes everything that carries our
 * process id. It leaves alone what was removed before.
 */
export function startCleanupProcess(pid = process.pid): void {
  // Twice: a command that we had started may have made something after the first look.
  const script = `trap '' INT TERM HUP; read never
    for look in first second; do
      for name in $(ls ${namespaceFolder} 2>/dev/null | grep '^turnout-${pid}-'); do
        ip netns pids "$name" | xargs -r kill -9; ip netns delete "$name"; done
      rm -rf ${statePath(pid)}; rmdir ${stateFolder} 2>/dev/null
      [ $look = second ] || sleep 0.5; done`;
  const guardian = spawn("sh", ["-c", script], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: environmentOf(process.env),
  });
  guardian.unref();
  (guardian.stdin as unknown as { unref?: () => void } | null)?.unref?.();
}

function isStale(pid: string | undefined): boolean {
  return pid !== undefined && !isAlive(Number(pid));
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself.
  }
}
