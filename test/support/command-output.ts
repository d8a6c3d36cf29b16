// Runs a command of the tool in this process, and returns its exit code and what it printed.
import type { CommandWorld } from "../../src/cli/commands/kube-proxy.ts";

type Run = (argv: readonly string[], world: CommandWorld, signal: AbortSignal) => Promise<number>;

export async function outputOf(
  command: Run,
  ...argv: string[]
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const printed = { out: "", err: "" };
  const world = {
    version: "0.0.0",
    environment: {},
    missingRights: () => null,
    stdout: (text: string) => {
      printed.out += text;
    },
    stderr: (text: string) => {
      printed.err += text;
    },
  } as unknown as CommandWorld;
  const code = await command(argv, world, new AbortController().signal);
  return { code, ...printed };
}
