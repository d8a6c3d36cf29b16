// The drop-in executable: kube-proxy's flags and nothing else.
import { writeFile } from "node:fs/promises";
import { systemClock } from "../observe/clock.ts";
import { runCommand } from "./command.ts";
import { openConfigFile } from "./config-file.ts";
import { runDaemon } from "./daemon.ts";

/** Set by the build. */
declare const TURNOUT_VERSION: string;

const goArchitectures: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386", ppc64: "ppc64le" };

// A reader that went away, as in `kube-proxy --help | head`, is no reason to fail.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

const world = {
  version: TURNOUT_VERSION,
  platform: {
    os: process.platform,
    arch: goArchitectures[process.arch] ?? process.arch,
    runtime: `node ${process.version}`,
  },
  width: process.stdout.columns ?? 110,
  pid: process.pid,
  clock: systemClock,
  stdout: (text: string) => void process.stdout.write(text),
  stderr: (text: string) => void process.stderr.write(text),
  openConfigFile,
  writeFile,
  runDaemon,
};

// No signal handlers, as in kube-proxy: a signal ends the process at once and leaves the rules in place.
runCommand(process.argv.slice(2), world, new AbortController().signal).then(
  (code) => {
    process.exitCode = code;
  },
  (bug: unknown) => {
    process.stderr.write(`${bug instanceof Error ? bug.stack : String(bug)}\n`);
    process.exitCode = 2;
  },
);
