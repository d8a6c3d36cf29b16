// `turnout completion`: prints a script that completes commands and flags in the user's shell.

import { UsageError } from "../../inspect/usage-error.ts";
import { command } from "../command.ts";
import { offersOf, shells } from "../completion.ts";
import type { CommandSpec } from "../flags.ts";

export const completionSpec = {
  name: "completion",
  summary: "print a completion script for bash, zsh or fish",
  usage: ["SHELL"],
  args: [{ name: "SHELL", choices: Object.keys(shells), description: "bash, zsh or fish" }],
  flags: [],
  examples: [
    "source <(turnout completion bash)",
    `turnout completion zsh > "\${fpath[1]}/_turnout"`,
    "turnout completion fish > ~/.config/fish/completions/turnout.fish",
  ],
} as const satisfies CommandSpec;

/** `specs` are those of all commands. */
export const completion = (specs: () => readonly CommandSpec[]) =>
  command(completionSpec, async ({ args: [shell = ""] }, world) => {
    const script = Object.hasOwn(shells, shell) ? shells[shell] : undefined;
    if (script === undefined) {
      const cause = shell === "" ? "a shell is required" : `unsupported shell ${JSON.stringify(shell)}`;
      throw new UsageError(`${cause}; use bash, zsh or fish, for example: turnout completion bash`);
    }
    world.stdout(script(offersOf(specs())));
    return 0;
  });
