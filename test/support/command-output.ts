// Runs a command of the tool in this process, and returns its exit code and what it printed.

import type { CommandWorld } from "../../src/cli/commands/kube-proxy.ts";
import { systemClock } from "../../src/observe/clock.ts";

type Run = (argv: readonly string[], world: CommandWorld, signal: AbortSignal) => Promise<number>;

type Output = { readonly code: number; readonly out: string; readonly err: string };

export function outputOf(command: Run, ...argv: string[]): Promise<Output> {
  return outputWith(command, argv);
}

/** With parts of another world. */
export async function outputWith(
  command: Run,
  argv: readonly string[],
  more: Partial<CommandWorld> = {},
  signal = new AbortController().signal,
): Promise<Output> {
  const printed = { out: "", err: "" };
  const world = {
    version: "0.0.0",
    // No daemon of this machine answers.
    environment: { TURNOUT_STATUS_SOCKET: "/nonexistent/status.sock" },
    missingRights: () => null,
    width: 110,
    clock: systemClock,
    stdout: (text: string) => {
      printed.out += text;
    },
    stderr: (text: string) => {
      printed.err += text;
    },
    ...more,
  } as unknown as CommandWorld;
  const code = await command(argv, world, signal);
  return { code, ...printed };
}
