// Boots a user-mode kernel that runs the tests of one file, and receives their results.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { build, type Plugin } from "esbuild";
import { compiler, hasLargeRegisters, kernelEnv } from "./registers.ts";
import { type Outcome, parseOutcome } from "./wire.ts";

export type Guest = {
  /** Resolves when the test is done; rejects when the guest ends before. */
  outcome(name: string): Promise<Outcome>;
  /** Resolves when it has ended, so that its CPU time counts. */
  stop(): Promise<void>;
};

const root = join(import.meta.dirname, "..", "..");

/** What a kernel is started with that runs this script of ours on the files of this machine. */
export function kernelArgs(script: string): string[] {
  // The guest mounts its own modules there.
  mkdirSync("/lib/modules", { recursive: true });
  // Otherwise it would keep its own files below HOME, which may not exist.
  const ownFolder = `uml_dir=${join(tmpdir(), "turnout-uml")}`;
  const files = ["rootfstype=hostfs", "rootflags=/", "ro", ownFolder];
  return [...files, "quiet", "con=null", "con0=fd:0,fd:1", `init=${join(root, "test", "uml", script)}`];
}

/** null when a user-mode kernel can be booted here; else why not. */
export function reasonNotToBoot(): string | null {
  if (process.getuid?.() !== 0) return "needs root on Linux";
  const files = { ...needed, ...(hasLargeRegisters() ? { [compiler]: "gcc libc6-dev" } : {}) };
  const missing = Object.entries(files).filter(([file]) => !existsSync(file));
  if (missing.length === 0) return null;
  return `needs the Debian packages ${missing.map(([, name]) => name).join(" ")}`;
}

const needed = {
  "/usr/bin/linux": "user-mode-linux",
  "/usr/bin/busybox": "busybox-static",
  "/usr/sbin/ipset": "ipset",
  "/usr/sbin/ipvsadm": "ipvsadm",
  "/usr/sbin/xtables-legacy-multi": "iptables",
  "/usr/sbin/conntrack": "conntrack",
  "/sbin/modprobe": "kmod",
} as const;

/** `minutes`: the longest it may take as a whole. */
export async function bootGuest(file: string, tests: readonly string[], minutes: number): Promise<Guest> {
  const bundle = await bundleFor(file, tests);
  // It ends with us, however we end.
  const kernel = spawn(
    "setpriv",
    [
      ...["--pdeathsig", "TERM", "timeout", "-k", "5", String(minutes * 60)],
      ...["linux", "mem=1024M", ...kernelArgs("init.sh")],
      ...[`NODE=${process.execPath}`, `BUNDLE=${bundle}`, `FOLDER=${root}`],
    ],
    { stdio: ["ignore", "pipe", "inherit"], env: kernelEnv() },
  );
  return listenTo(kernel);
}

function listenTo(kernel: ChildProcess): Guest {
  const known = new Map<string, Outcome>();
  const waiting = new Map<string, { done(outcome: Outcome): void; failed(error: Error): void }>();
  const other: string[] = [];
  let hasEnded = false;
  const ended = () => new Error(`the guest ended before this test\n${other.slice(-40).join("\n")}`);
  const exited = new Promise<void>((resolve) => kernel.once("exit", () => resolve()));
  const lines = createInterface({ input: kernel.stdout! });
  lines.on("line", (line) => {
    const outcome = parseOutcome(line);
    if (outcome === null) return void other.push(line);
    known.set(outcome.name, outcome);
    waiting.get(outcome.name)?.done(outcome);
  });
  lines.on("close", () => {
    hasEnded = true;
    for (const wait of waiting.values()) wait.failed(ended());
  });
  return {
    outcome: (name) =>
      new Promise((done, failed) => {
        const outcome = known.get(name);
        if (outcome !== undefined) done(outcome);
        else if (hasEnded) failed(ended());
        else waiting.set(name, { done, failed });
      }),
    stop() {
      kernel.kill();
      return exited;
    },
  };
}

async function bundleFor(file: string, tests: readonly string[]): Promise<string> {
  const outfile = join(root, "dist", "uml", `${basename(file, ".test.ts")}.mjs`);
  const contents = [
    `Object.assign(process.env, ${JSON.stringify(passedOn())});`,
    `import { runHere } from ${JSON.stringify(join(root, "test/uml/guest.ts"))};`,
    `const load = () => import(${JSON.stringify(file)});`,
    `await runHere(${JSON.stringify(file)}, load, ${JSON.stringify(tests)});`,
  ].join("\n");
  await build({
    absWorkingDir: root,
    stdin: { contents, resolveDir: root },
    outfile,
    bundle: true,
    platform: "node",
    target: "node26",
    format: "esm",
    external: ["koffi"],
    alias: { vitest: "./test/uml/vitest.ts" },
    banner: {
      js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
    },
    plugins: [ownFolders],
    logLevel: "warning",
  });
  return outfile;
}

/** Settings of tests; the guest has no other environment. */
function passedOn(): Record<string, string | undefined> {
  const names = Object.keys(process.env).filter((name) => name.startsWith("TURNOUT_"));
  const all = [...names, "HOME", "KUBEBUILDER_ASSETS", "XDG_CACHE_HOME"];
  return Object.fromEntries(all.map((name) => [name, process.env[name]]));
}

/** Each file has its own folder, wherever the bundle is. */
const ownFolders: Plugin = {
  name: "own folders",
  setup: (bundling) =>
    bundling.onLoad({ filter: /\/(src|test)\/.*\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replaceAll("import.meta.dirname", JSON.stringify(dirname(path))),
      loader: "ts",
    })),
};
