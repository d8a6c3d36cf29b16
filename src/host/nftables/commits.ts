// Counts our own transactions, so that the kernel's generation shows whether another process made any.
import { readGeneration } from "../netlink/ruleset.ts";
import type { Place } from "../netlink/socket.ts";

/** The kernel's generation, which every transaction moves on by one, and how many of them were ours. */
export type Mark = { readonly generation: number; readonly own: number };

/** All transactions of this process in one place; both families share the generation. */
export class Commits {
  /** Port ids of the sockets that they go through. */
  readonly portIds = new Set<number>();
  #done = 0;
  #pending = 0;

  async counted<T>(transaction: () => Promise<T>): Promise<T> {
    this.#pending++;
    try {
      const result = await transaction();
      this.#done++;
      return result;
    } finally {
      this.#pending--;
    }
  }

  /** null when we are so busy that no moment was found between two of our transactions. */
  async mark(place: Place, signal?: AbortSignal): Promise<Mark | null> {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const own = this.#done;
      if (this.#pending === 0) {
        const generation = (await readGeneration(place, signal)).id;
        if (this.#pending === 0 && this.#done === own) return { generation, own };
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    return null;
  }
}

const attempts = 500;
const pauseMs = 10;
const known = new Map<string, Commits>();

export function commitsIn({ netns = "" }: Place): Commits {
  let commits = known.get(netns);
  if (commits === undefined) {
    commits = new Commits();
    known.set(netns, commits);
  }
  return commits;
}
