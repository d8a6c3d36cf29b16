// Whether a host can run another mode, and what its current mode would leave there; changes nothing.
import { existsSync, readFileSync } from "node:fs";
import type { ModeName } from "../config/modes.ts";
import { HostError } from "../host/error.ts";
import { modes } from "../modes/index.ts";
import type { ReadFile } from "../modes/read-file.ts";

export type Readiness = {
  /** Why the mode cannot run here; empty if it can. */
  readonly blocks: readonly string[];
  readonly remarks: readonly string[];
};

export async function readinessFor(
  from: ModeName,
  to: ModeName,
  place: { readonly netns?: string },
): Promise<Readiness> {
  const blocks: string[] = [];
  try {
    await modes[to].check(place);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    blocks.push(error.message);
  }
  // These files differ in the network namespace of a playground node.
  return { blocks, remarks: place.netns === undefined ? remarksOn(from, to, readHere) : [] };
}

export function remarksOn(from: ModeName, to: ModeName, read: ReadFile): string[] {
  return [...modes[to].missing(read), ...modes[from].leftovers(read)];
}

function readHere(path: string): string | null {
  return existsSync(path) ? readFileSync(path, "utf8") : null;
}
