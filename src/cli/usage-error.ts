// Every command reports a usage error, an unreachable cluster or an unreadable kernel in one sentence, with exit code 1.

import { HostError } from "../host/error.ts";
import { UsageError } from "../inspect/usage-error.ts";
import { printableLine } from "../model/printable.ts";
import { SourceError } from "../sources/source.ts";
import type { CommandWorld } from "./commands/kube-proxy.ts";

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
