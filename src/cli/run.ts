// `turnout run`: the daemon of kube-proxy with a few settings of our own.
import { defaultStatusSocket } from "../observe/status.ts";
import { parseSourceSpec, userAgentOf } from "../sources/index.ts";
import type { CommandWorld } from "./command.ts";
import { runCommand } from "./command.ts";
import { type DaemonOptions, runDaemon } from "./daemon.ts";
import { type OwnFlags, splitOwnFlags } from "./own-flags.ts";

const own = {
  source: "where cluster state comes from: api (default), kubeconfig:PATH, files:PATH[,PATH…] or a URL",
  mode: "short for --proxy-mode",
  "nftables-ownership":
    "plain (default: foreign changes are repaired) or owned (foreign changes are refused)",
  "status-socket": "where turnout status can ask (default /run/turnout/status.sock); empty: nowhere",
  "config-changes":
    "when the file of --config changes: restart (default: end with 1, as kube-proxy) or apply what can be applied",
  "health-answers": "honest (default) or upstream: exactly what kube-proxy would answer",
} as const;

export const runHelp = `turnout run: the daemon, as kube-proxy, with settings of its own

Usage: turnout run [--source=…] [--mode=nftables] [flags of kube-proxy]

${Object.entries(own)
  .map(([name, text]) => `  --${name.padEnd(20)} ${text}`)
  .join("\n")}

All flags of kube-proxy work as well: bin/kube-proxy --help lists them.

Without a cluster:
  turnout run --source=files:examples/shop --mode=nftables --hostname-override=node-a
`;

export async function run(
  argv: readonly string[],
  world: CommandWorld,
  signal: AbortSignal,
): Promise<number> {
  const { given, rest } = splitOwnFlags(argv, Object.keys(own));
  if (rest.includes("--help") || rest.includes("-h")) {
    world.stdout(runHelp);
    return 0;
  }
  const extra = extraOptions(given, world.version);
  if (typeof extra === "string") {
    world.stderr(`Error: ${extra}\n`);
    return 1;
  }
  const args = given.mode === undefined ? rest : [`--proxy-mode=${given.mode}`, ...rest];
  const daemon = (options: DaemonOptions, stop: AbortSignal) => runDaemon({ ...options, ...extra }, stop);
  return runCommand(args, { ...world, runDaemon: daemon }, signal);
}

/** A text says what is wrong. */
function extraOptions(given: OwnFlags, version: string): Partial<DaemonOptions> | string {
  const ownership = given["nftables-ownership"] ?? "plain";
  if (ownership !== "plain" && ownership !== "owned")
    return `--nftables-ownership must be plain or owned, not "${ownership}"`;
  const answers = given["health-answers"] ?? "honest";
  if (answers !== "honest" && answers !== "upstream")
    return `--health-answers must be honest or upstream, not "${answers}"`;
  const changes = given["config-changes"] ?? "restart";
  if (changes !== "restart" && changes !== "apply")
    return `--config-changes must be restart or apply, not "${changes}"`;
  try {
    const source =
      given.source === undefined ? {} : { source: parseSourceSpec(given.source, userAgentOf(version)) };
    return {
      owned: ownership === "owned",
      healthAnswers: answers,
      configChanges: changes,
      statusSocket: given["status-socket"] ?? defaultStatusSocket,
      ...source,
    };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
