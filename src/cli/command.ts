// A command of the tool: its flag table, and the function that runs it.

import type { CommandWorld } from "./commands/kube-proxy.ts";
import { type CommandLine, type CommandSpec, type Flag, readCommandLine, requestsHelp } from "./flags.ts";
import { helpText } from "./help.ts";
import { withUsageErrors } from "./usage-error.ts";

/** Resolves with the exit code. */
export type RunCommand = (
  argv: readonly string[],
  world: CommandWorld,
  signal: AbortSignal,
) => Promise<number>;

export type Command = { readonly spec: CommandSpec; readonly run: RunCommand };

/** Reads the arguments by the flag table, prints help where it is requested, and reports usage errors. */
export function command<Flags extends readonly Flag[]>(
  spec: CommandSpec<Flags>,
  run: (line: CommandLine<Flags>, world: CommandWorld, signal: AbortSignal) => Promise<number>,
): RunCommand {
  return (argv, world, signal) =>
    withUsageErrors(spec.name, world, async () => {
      if (!requestsHelp(argv)) return run(readCommandLine(spec, argv), world, signal);
      world.stdout(helpText(spec));
      return 0;
    });
}
