// `turnout run`: runs the daemon with kube-proxy's flags and Turnout's own.

import { readFlags } from "../../config/flags/read.ts";
import { type DaemonOptions, runDaemon } from "../../daemon/daemon.ts";
import { filesHint } from "../../inspect/target.ts";
import { modeNames } from "../../inspect/target-config.ts";
import { alternatives, UsageError } from "../../inspect/usage-error.ts";
import { defaultStatusSocket } from "../../observe/status/status.ts";
import { parseSourceSpec, type SourceSpec, userAgentOf } from "../../sources/index.ts";
import type { RunCommand } from "../command.ts";
import { type CommandSpec, requestsHelp, splitFlags, type Values } from "../flags.ts";
import { helpText } from "../help.ts";
import { withUsageErrors } from "../usage-error.ts";
import { runCommand } from "./kube-proxy.ts";

export const runSpec = {
  name: "run",
  summary: "run the daemon with kube-proxy's flags and Turnout's own",
  usage: ["[flags] [flags of kube-proxy]"],
  flags: [
    {
      name: "source",
      value: "SOURCE",
      suggestions: ["files:", "kubeconfig:", "api"],
      example: "files:examples/shop",
      fallback: "api",
      description: "where cluster state comes from: api, kubeconfig:PATH, files:PATH[,PATH…] or a URL",
    },
    {
      name: "mode",
      value: "MODE",
      suggestions: modeNames,
      example: "nftables",
      description: `short for --proxy-mode: ${alternatives(modeNames)}`,
    },
    {
      name: "nftables-ownership",
      value: "OWNERSHIP",
      choices: ["plain", "owned"],
      fallback: "plain",
      description: "plain: changes by other programs are repaired; owned: the kernel refuses them",
    },
    {
      name: "status-socket",
      value: "PATH",
      example: "/run/turnout/status.sock",
      fallback: defaultStatusSocket,
      description: "socket that turnout status connects to; empty: none",
    },
    {
      name: "config-changes",
      value: "ACTION",
      choices: ["restart", "apply", "apply-live-only"],
      fallback: "restart",
      description:
        "when the file of --config changes: restart exits with 1, as kube-proxy does; apply updates in place where possible and otherwise restarts; apply-live-only only updates in place",
    },
    {
      name: "health-answers",
      value: "ANSWERS",
      choices: ["honest", "upstream"],
      fallback: "honest",
      description: "answers of the health checks; upstream: exactly those of kube-proxy",
    },
  ],
  notes: ["All flags of kube-proxy are accepted as well; bin/kube-proxy --help lists them."],
  examples: ["turnout run --source=files:examples/shop --mode=nftables --hostname-override=node-a"],
} as const satisfies CommandSpec;

export const run: RunCommand = (argv, world, signal) =>
  withUsageErrors("run", world, async () => {
    if (requestsHelp(argv)) {
      world.stdout(helpText(runSpec));
      return 0;
    }
    const { flags, rest } = splitFlags(runSpec.flags, argv);
    const extra = extraOptions(flags, world.version);
    const args = flags.mode === undefined ? rest : [`--proxy-mode=${flags.mode}`, ...rest];
    checkFlags(args);
    const daemon = (options: DaemonOptions, stop: AbortSignal) => runDaemon({ ...options, ...extra }, stop);
    return runCommand(args, { ...world, runDaemon: daemon }, signal);
  });

/** Reports the first error in one line: kube-proxy would print its whole usage before it. */
function checkFlags(args: readonly string[]): void {
  const read = readFlags(
    args,
    runSpec.flags.map(({ name }) => name),
  );
  if (!read.ok) throw new UsageError(`${read.reason}; see turnout run --help and bin/kube-proxy --help`);
  const [argument] = read.value.positional.filter((each) => each !== "");
  if (argument !== undefined)
    throw new UsageError(`unexpected argument ${JSON.stringify(argument)}; turnout run takes only flags`);
}

function extraOptions(flags: Values<typeof runSpec.flags>, version: string): Partial<DaemonOptions> {
  return {
    owned: flags["nftables-ownership"] === "owned",
    healthAnswers: flags["health-answers"] ?? "honest",
    configChanges: flags["config-changes"] ?? "restart",
    statusSocket: flags["status-socket"] ?? defaultStatusSocket,
    ...(flags.source === undefined ? {} : { source: sourceOf(flags.source, version) }),
  };
}

function sourceOf(text: string, version: string): SourceSpec {
  try {
    return parseSourceSpec(text, userAgentOf(version));
  } catch (error) {
    throw new UsageError(`${(error as Error).message}${filesHint(text)}`);
  }
}
