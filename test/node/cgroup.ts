// The cgroup of one node, under which its kubelet keeps those of its pods.
import { existsSync, mkdirSync, readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const root = "/sys/fs/cgroup";
const prefix = "turnout-";

/** A name that contains its owner: `turnout-<pid>-<label>`. */
export function cgroupName(label: string): string {
  return `${prefix}${process.pid}-${label}`;
}

export function createCgroup(name: string): void {
  for (const controller of controllers()) mkdirSync(join(controller, name), { recursive: true });
}

/** The processes in it have been killed; the kernel takes a moment to let go of them. */
export async function removeCgroup(name: string): Promise<void> {
  const deadline = Date.now() + 20_000;
  for (;;) {
    try {
      for (const controller of controllers()) removeTree(join(controller, name));
      return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(100);
    }
  }
}

/** Removes what test processes that died have left. */
export async function sweepCgroups(): Promise<void> {
  const names = new Set(controllers().flatMap((controller) => readdirSync(controller)));
  for (const name of names) {
    const owner = /^turnout-(\d+)-node-/.exec(name)?.[1];
    if (owner !== undefined && !existsSync(`/proc/${owner}`)) await removeCgroup(name);
  }
}

/** With cgroup v1 one folder per controller, with v2 one for all. */
function controllers(): string[] {
  if (existsSync(join(root, "cgroup.procs"))) return [root];
  return readdirSync(root)
    .map((name) => join(root, name))
    .filter((path) => existsSync(join(path, "cgroup.procs")));
}

function removeTree(path: string): void {
  if (!existsSync(path)) return;
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isDirectory()) removeTree(join(path, entry.name));
  rmdirSync(path);
}
