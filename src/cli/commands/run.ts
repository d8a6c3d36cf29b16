// `turnout run`: the daemon of kube-proxy with a few settings of our own.

import { readFlags } from "../../config/flags/read.ts";
import { type DaemonOptions, runDaemon } from "../../daemon/daemon.ts";
import { filesHint } from "../../inspect/target.ts";
import { alternatives, UsageError } from "../../inspect/usage-error.ts";
import { defaultStatusSocket } from "../../observe/status/status.ts";
import { parseSourceSpec, type SourceSpec, userAgentOf } from "../../sources/index.ts";
import { type OwnFlags, splitOwnFlags } from "../own-flags.ts";
import { withUsageErrors } from "../usage-error.ts";
import { type CommandWorld, runCommand } from "./kube-proxy.ts";

const own = {
  source: "where cluster state comes from: api (default), kubeconfig:PATH, files:PATH[,PATH…] or a URL",
  mode: "short for --proxy-mode",
  "nftables-ownership":
    "plain (default: foreign changes are repaired) or owned (foreign changes are refused)",
  "status-socket": "where turnout status can ask (default /run/turnout/status.sock); empty: nowhere",
  "config-changes":
    "when the file of --config changes: restart (default: exit with 1, as kube-proxy), apply (in place where possible, else restart) or apply-live-only (in place only)",
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

export function run(argv: readonly string[], world: CommandWorld, signal: AbortSignal): Promise<number> {
  return withUsageErrors("run", world, async () => {
    const names = Object.keys(own);
    const { given, rest } = splitOwnFlags(argv, names);
    if (rest.includes("--help") || rest.includes("-h")) {
      world.stdout(runHelp);
      return 0;
    }
    const extra = extraOptions(given, world.version);
    const args = given.mode === undefined ? rest : [`--proxy-mode=${given.mode}`, ...rest];
    checkFlags(args, names);
    const daemon = (options: DaemonOptions, stop: AbortSignal) => runDaemon({ ...options, ...extra }, stop);
    return runCommand(args, { ...world, runDaemon: daemon }, signal);
  });
}

/** One sentence: kube-proxy would print all of its usage before it. */
function checkFlags(args: readonly string[], names: readonly string[]): void {
  const read = readFlags(args, names);
  if (!read.ok)
    throw new UsageError(`${read.reason}; turnout run --help and bin/kube-proxy --help list the flags`);
  const [word] = read.value.positional.filter((each) => each !== "");
  if (word !== undefined) throw new UsageError(`cannot use ${JSON.stringify(word)}; it takes flags alone`);
}

function extraOptions(given: OwnFlags, version: string): Partial<DaemonOptions> {
  return {
    owned: oneOf("nftables-ownership", given, ["plain", "owned"]) === "owned",
    healthAnswers: oneOf("health-answers", given, ["honest", "upstream"]),
    configChanges: oneOf("config-changes", given, ["restart", "apply", "apply-live-only"]),
    statusSocket: given["status-socket"] ?? defaultStatusSocket,
    ...(given.source === undefined ? {} : { source: sourceOf(given.source, version) }),
  };
}

/** The first is the default. */
function oneOf<const T extends string>(name: string, given: OwnFlags, values: readonly [T, ...T[]]): T {
  const text = given[name] ?? values[0];
  const value = values.find((each) => each === text);
  if (value === undefined)
    throw new UsageError(`--${name} must be ${alternatives(values)}, not ${JSON.stringify(text)}`);
  return value;
}

function sourceOf(text: string, version: string): SourceSpec {
  try {
    return parseSourceSpec(text, userAgentOf(version));
  } catch (error) {
    throw new UsageError(`${(error as Error).message}${filesHint(text)}`);
  }
}
