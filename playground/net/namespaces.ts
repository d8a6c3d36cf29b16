// Creates and removes the network namespaces of a playground, including those of crashed playgrounds.

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

export function addNamespaces(names: readonly string[]): void {
  batch(
    [],
    names.map((name) => `netns add ${name}`),
  );
}

/** Runs `ip` once per namespace; skips IPv6 commands on a machine without IPv6. */
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
        "cannot run ip: it is not installed; on Debian: apt-get install iproute2 nftables",
      );
    throw new CannotStart(`cannot create the network: ip: ${JSON.stringify(String(stderr).trim())}`);
  }
}

/** In a separate session, so that Ctrl-C does not leave a partial network. */
function runIp(args: readonly string[], input = ""): string {
  const env = environmentOf(process.env);
  const options = { input, stdio: "pipe", encoding: "utf8", detached: true, env } as const;
  return execFileSync("ip", args, options);
}

/** Removes what crashed playgrounds left; returns the number of namespaces. */
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

/** Kills the processes inside and removes the namespace. */
export function removeNamespace(name: string): void {
  if (!existsSync(join(namespaceFolder, name))) return;
  const pids = runIp(["netns", "pids", name]).split("\n").map(Number);
  for (const pid of pids.filter((each) => each > 1 && each !== process.pid)) endProcess(pid);
  runIp(["netns", "delete", name]);
}

/**
 * Starts a shell that outlives this process: when its input closes, it removes everything named after our process id
 * that still exists.
 */
export function startCleanupProcess(pid = process.pid): void {
  // Twice: a running command may create something after the first pass.
  const script = `trap '' INT TERM HUP; read never
    for pass in first second; do
      for name in $(ls ${namespaceFolder} 2>/dev/null | grep '^turnout-${pid}-'); do
        ip netns pids "$name" | xargs -r kill -9; ip netns delete "$name"; done
      rm -rf ${statePath(pid)}; rmdir ${stateFolder} 2>/dev/null
      [ $pass = second ] || sleep 0.5; done`;
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
    // It has already exited.
  }
}
