// Keeps the state of this Node and sends every change of it to its subscribers.

import { Notifier } from "../model/notifier.ts";
import type { ClusterNode } from "../model/snapshot.ts";
import type { NodeEvent } from "./source.ts";

export class NodeLog {
  /** null: not known yet. */
  #now: NodeEvent | null = null;
  #uid = "";
  readonly #listeners = new Set<(event: NodeEvent) => void>();

  /** The current Node, or null: it does not exist. Another UID under the same name is another Node. */
  see(node: ClusterNode | null, uid: string): void {
    const wasThere = this.#now?.kind === "present";
    if (wasThere && (node === null || uid !== this.#uid)) this.#report({ kind: "deleted" });
    this.#uid = uid;
    if (node !== null) this.#report({ kind: "present", node });
    else if (this.#now === null) this.#report({ kind: "absent" });
  }

  /** Every event from now on, after one with the current state. */
  async *events(signal: AbortSignal): AsyncGenerator<NodeEvent> {
    const waiting: NodeEvent[] = this.#now === null ? [] : [this.#now];
    const notifier = new Notifier();
    const listener = (event: NodeEvent) => {
      waiting.push(event);
      notifier.notify();
    };
    this.#listeners.add(listener);
    try {
      while (!signal.aborted) {
        for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) yield event;
        await notifier.notified(signal).catch(() => {});
      }
    } finally {
      this.#listeners.delete(listener);
    }
  }

  #report(event: NodeEvent): void {
    this.#now = event;
    for (const listener of this.#listeners) listener(event);
  }
}
