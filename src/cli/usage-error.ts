// A mistake in what the user said, a cluster not to be reached, a kernel that does not tell: every command answers with a
// sentence and exit code 1.
import { HostError } from "../host/error.ts";
import { printableLine } from "../model/printable.ts";
import { SourceError } from "../sources/source.ts";
import type { CommandWorld } from "./commands/kube-proxy.ts";

/** The text says how to mend it. */
export class UsageError extends Error {}

/** `a, b or c`. */
export function alternatives(words: readonly string[]): string {
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/** The first of many. */
export function few(names: readonly string[]): string {
  const most = 10;
  const shown = names.slice(0, most).join(", ");
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}

/** Why a file the user named cannot be read. */
export function whyUnreadable(path: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const why = code === "ENOENT" ? "there is no such file" : code === "EISDIR" ? "it is a directory" : message;
  return `cannot read ${path}: ${why}`;
}

export async function withUsageErrors(
  name: string,
  world: CommandWorld,
  work: () => Promise<number>,
): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof SourceError || error instanceof HostError))
      throw error;
    const why = error instanceof HostError && process.getuid?.() !== 0 ? "; only root may do that" : "";
    // What a server or the kernel says is one line; the sentences of a Mistake are our own.
    const text = error instanceof UsageError ? error.message : printableLine(error.message);
    world.stderr(`turnout ${name}: ${text}${why}\n`);
    return 1;
  }
}
