// Runs `turnout run` on files in its own network namespace, as in README.
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import type { Namespace } from "./netns.ts";
import { eventually } from "./site.ts";

const root = join(import.meta.dirname, "..", "..");

export type FilesDaemon = {
  readonly log: () => string;
  readonly pid: () => number;
  /** null while it runs. */
  readonly code: () => number | null;
  readonly stop: () => Promise<number | null>;
};

/** A shell line, in the repository or a copy of it. `/run/turnout` is private, so that daemons of other tests are not in its way. */
export function startLine(netns: Namespace, line: string, cwd = root): FilesDaemon {
  const wrapped = `mkdir -p /run/turnout && mount -t tmpfs tmpfs /run/turnout && exec ${line}`;
  const child = spawn("ip", ["netns", "exec", netns.name, "unshare", "-m", "sh", "-c", wrapped], {
    cwd,
    env: {
      ...process.env,
      PATH: `${join(cwd, "bin")}:${process.env.PATH}`,
      TURNOUT_STATUS_SOCKET: undefined,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (some) => (log += String(some)));
  return { log: () => log, pid: () => child.pid!, code: () => child.exitCode, stop: () => stopped(child) };
}

/** Waits until the node's table serves this address. */
export async function untilServed(netns: Namespace, daemon: FilesDaemon, address: string): Promise<void> {
  const table = () => {
    if (daemon.code() !== null) throw new Error(`the daemon ended: ${daemon.log()}`);
    return netns.run("nft", "list", "ruleset");
  };
  await eventually(() => table().includes(address), `the table serves ${address}`, 20_000, 100);
}

async function stopped(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null) return child.exitCode;
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  return ended;
}
