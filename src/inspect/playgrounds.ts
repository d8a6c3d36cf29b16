// The playgrounds running on this machine: their network namespaces, files and nodes.
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

export const namespaceFolder = "/run/netns";
export const stateFolder = "/run/turnout-playground";
export const namePattern = /^turnout-(\d+)-/;

/** File of a network namespace. */
export function namespacePath(name: string): string {
  return join(namespaceFolder, name);
}

/** `turnout-<pid>-<label>`: the process ID shows whether its owner is still running. */
export function namespaceName(label: string, pid = process.pid): string {
  return `turnout-${pid}-${label}`;
}

/** Files of one playground: its kubeconfig, and the sockets of its nodes. */
export function statePath(pid = process.pid): string {
  return join(stateFolder, String(pid));
}

/** Nodes of every playground. */
export const playgroundNodes = ["node-a", "node-b"] as const;

/** Process IDs of running playgrounds, the most recently started last. */
export function livingPlaygrounds(states = stateFolder): number[] {
  if (!existsSync(states)) return [];
  const pids = readdirSync(states).flatMap((name) => /^(\d+)$/.exec(name)?.[1] ?? []);
  const startedAt = (pid: number) =>
    statSync(join(states, String(pid), "kubeconfig"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return pids
    .map(Number)
    .filter(isAlive)
    .sort((a, b) => startedAt(a) - startedAt(b));
}

export function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}
