// Reports a usage error, an unreachable cluster or an unreadable kernel in one line, with exit code 1.

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
    const advice = error instanceof HostError && process.getuid?.() !== 0 ? "; run as root" : "";
    // Messages of a server or the kernel may have several lines; ours have one.
    const text = error instanceof UsageError ? error.message : printableLine(error.message);
    world.stderr(`turnout ${name}: ${text}${advice}\n`);
    return 1;
  }
}
