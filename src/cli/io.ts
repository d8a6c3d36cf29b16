// Gives the commands access to the real machine.
import { writeFile } from "node:fs/promises";
import { openConfigFile } from "../daemon/config/config-file.ts";
import { runDaemon } from "../daemon/daemon.ts";
import { printable } from "../model/printable.ts";
import { systemClock } from "../observe/clock.ts";
import type { CommandWorld } from "./commands/kube-proxy.ts";
import { missingRights } from "./rights.ts";

/** Set by the build. */
declare const TURNOUT_VERSION: string;

const goArchitectures: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386", ppc64: "ppc64le" };

export function commandWorld(): CommandWorld {
  // A closed pipe, as in `kube-proxy --help | head`, is not an error.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  return {
    version: TURNOUT_VERSION,
    platform: {
      os: process.platform,
      arch: goArchitectures[process.arch] ?? process.arch,
      runtime: `node ${process.version}`,
    },
    isTerminal: process.stderr.isTTY === true,
    width: process.stdout.columns ?? 110,
    height: process.stdout.rows,
    clearScreen: process.stdout.isTTY ? () => void process.stdout.write("\x1b[H\x1b[2J") : undefined,
    pid: process.pid,
    clock: systemClock,
    // Nearly all output contains text from the cluster, so it is escaped here, for all commands.
    stdout: (text: string) => void process.stdout.write(printable(text)),
    stderr: (text: string) => void process.stderr.write(printable(text)),
    environment: process.env,
    openConfigFile,
    writeFile,
    runDaemon,
    missingRights,
  };
}
