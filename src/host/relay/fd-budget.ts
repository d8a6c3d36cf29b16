// How many descriptors relays may use, so that the rest of the process, its rules and its watches never run out of them.
import { readFileSync } from "node:fs";

/** Shared by all relays of a family. */
export class FdBudget {
  /** The maximum of one relay, so that a flood on one Service does not starve the others. */
  readonly share: number;
  #free: number;

  constructor(total: number) {
    this.share = total >> 1;
    this.#free = total;
  }

  has(count: number): boolean {
    return this.#free >= count;
  }

  /** Until it is given back. */
  take(count: number): void {
    this.#free -= count;
  }

  give(count: number): void {
    this.#free += count;
  }
}

/** Half of what this process may have open, for there are two families, less a reserve for everything that is no connection. */
export function processFdBudget(): FdBudget {
  const most = openFileLimit();
  return new FdBudget((most - Math.min(4096, most >> 1)) >> 1);
}

/** Node.js has raised it to the hard limit by now. */
function openFileLimit(): number {
  const line = /^Max open files\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8"));
  const limit = Number(line?.[1]);
  return Number.isNaN(limit) ? 1 << 20 : limit;
}
