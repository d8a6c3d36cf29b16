// `turnout run`: runs the daemon with kube-proxy's flags and Turnout's own.

import { readFlags } from "../../config/flags/read.ts";
import type { DaemonOptions } from "../../daemon/daemon.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import type { RunCommand } from "../command.ts";
import { type CommandSpec, requestsHelp, splitFlags } from "../flags.ts";
import { helpText } from "../help.ts";
import { fromEnvironment, ownFlags, ownOptions, variableOf, withMode } from "../own-flags.ts";
import { withUsageErrors } from "../usage-error.ts";
import { runCommand } from "./kube-proxy.ts";

export const runSpec = {
  name: "run",
  summary: "run the daemon with kube-proxy's flags and Turnout's own",
  usage: ["[flags] [flags of kube-proxy]"],
  flags: ownFlags,
  notes: [
    "All flags of kube-proxy are accepted as well; bin/kube-proxy --help lists them.",
    `Each flag above can also be set by an environment variable, which bin/kube-proxy reads too; a flag takes precedence:\n${ownFlags.map((flag) => `  ${variableOf(flag)}`).join("\n")}`,
  ],
  examples: ["turnout run --source=files:examples/shop --mode=nftables --hostname-override=node-a"],
} as const satisfies CommandSpec;

export const run: RunCommand = (argv, world, signal) =>
  withUsageErrors("run", world, async () => {
    if (requestsHelp(argv)) {
      world.stdout(helpText(runSpec));
      return 0;
    }
    const { flags, rest } = splitFlags(ownFlags, argv);
    const own = { ...fromEnvironment(world.environment, world.version), ...flags };
    const extra = ownOptions(own, world.version);
    const args = withMode(own, rest);
    checkFlags(args);
    const runDaemon = (options: DaemonOptions, stop: AbortSignal) =>
      world.runDaemon({ ...options, ...extra }, stop);
    return runCommand(args, { ...world, runDaemon }, signal);
  });

/** Reports the first error in one line: kube-proxy would print its whole usage before it. */
function checkFlags(args: readonly string[]): void {
  const read = readFlags(
    args,
    ownFlags.map(({ name }) => name),
  );
  if (!read.ok) throw new UsageError(`${read.reason}; see turnout run --help and bin/kube-proxy --help`);
  const [argument] = read.value.positional.filter((each) => each !== "");
  if (argument !== undefined)
    throw new UsageError(`unexpected argument ${JSON.stringify(argument)}; turnout run takes only flags`);
}
