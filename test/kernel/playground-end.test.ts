// A playground removes its namespaces, processes and files, however it ends.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, it } from "vitest";
import { reasonToSkip } from "./netns.ts";

const root = join(import.meta.dirname, "..", "..");
const program = join(root, "dist", "playground.cjs");
const reason = existsSync(program) ? reasonToSkip() : "not built; build with: npm run build";

const directly = [process.execPath, program, "playground"];
/** What `npm start` runs after setup, with npm and a shell as parents. */
const byNpm = ["npm", "exec", "--no", "-c", `exec ${process.execPath} scripts/start.mjs --port=0`];

describe("the end of a playground", () => {
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));

  it.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"] as const)("%s", async (signal) => {
    const { child, pid } = await started([...directly, "--port=0"]);
    expect(remains(pid)).not.toEqual([]);
    child.kill(signal);
    await nothingRemains(pid);
  });

  it.each(["SIGINT", "SIGTERM", "SIGKILL"] as const)("%s to npm alone", async (signal) => {
    const { child, pid } = await started(byNpm);
    child.kill(signal);
    await nothingRemains(pid);
  });

  it("Ctrl-C, which signals the whole process group", async () => {
    const { child, pid } = await started(byNpm);
    process.kill(-child.pid!, "SIGINT");
    await nothingRemains(pid);
  });

  it.each([300, 1000, 2000, 3000])("SIGKILL %i ms after the start", async (ms) => {
    const child = spawn(directly[0]!, [...directly.slice(1), "--port=0"], { stdio: "ignore" });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    await sleep(ms);
    child.kill("SIGKILL");
    await ended;
    await nothingRemains(child.pid!);
  });

  it("a second playground does not affect the first", async () => {
    const [first, second] = [
      await started([...directly, "--port=0"]),
      await started([...directly, "--port=0"]),
    ];
    second.child.kill("SIGKILL");
    await nothingRemains(second.pid);
    expect(remains(first.pid)).not.toEqual([]);
    first.child.kill("SIGTERM");
    await nothingRemains(first.pid);
  });
});

/** Resolves when it serves; its process id is in the path of its kubeconfig. */
function started([command = "", ...args]: readonly string[]): Promise<{ child: ChildProcess; pid: number }> {
  const child = spawn(command, args, { cwd: root, stdio: ["ignore", "pipe", "inherit"], detached: true });
  let text = "";
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`ended with ${code}: ${text}`)));
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const pid = /turnout-playground\/(\d+)\/kubeconfig/.exec(text)?.[1];
      if (pid !== undefined) resolve({ child, pid: Number(pid) });
    });
  });
}

async function nothingRemains(pid: number): Promise<void> {
  for (let tries = 0; remains(pid).length > 0 && tries < 600; tries++) await sleep(100);
  expect(remains(pid)).toEqual([]);
}

/** The process of a playground, and namespaces, files and processes named after its process id. */
function remains(pid: number): string[] {
  const namespaces = existsSync("/run/netns") ? readdirSync("/run/netns") : [];
  const state = `/run/turnout-playground/${pid}`;
  const processes = readdirSync("/proc").filter(
    (name) =>
      /^\d+$/.test(name) && (name === `${pid}` ? isAlive(name) : read(name, "cmdline").includes(state)),
  );
  return [
    ...namespaces.filter((name) => name.startsWith(`turnout-${pid}-`)),
    ...(existsSync(state) ? [state] : []),
    ...processes.map((name) => `${name} ${read(name, "cmdline").replaceAll("\0", " ")}`),
  ];
}

/** One that has ended may wait for its parent. */
function isAlive(pid: string): boolean {
  return /^State:\s+[^Z]/m.test(read(pid, "status"));
}

/** A file of a process; empty when it has ended. */
function read(pid: string, file: "cmdline" | "status"): string {
  try {
    return readFileSync(join("/proc", pid, file), "utf8");
  } catch {
    return "";
  }
}
