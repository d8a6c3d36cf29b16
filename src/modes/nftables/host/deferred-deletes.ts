// Chains that an old kernel does not delete immediately: they are emptied, and deleted a second later.
import { PatchRefused, type TableHost, type Written } from "../../../host/nftables/host.ts";
import type { Clock } from "../../../model/clock.ts";
import type { Operation } from "../../../plan/nftables/diff.ts";

/** Before Linux 6.2 a chain counts as referenced for a moment after its last reference is gone. */
const delayMs = 1000;

export class DeferredDeletes {
  readonly #host: Pick<TableHost, "apply">;
  readonly #after: Clock["after"];
  readonly #names = new Set<string>();
  #cancel: (() => void) | null = null;
  #failures = 0;

  constructor(host: Pick<TableHost, "apply">, after: Clock["after"]) {
    this.#host = host;
    this.#after = after;
  }

  /** How often a chain was still in use when its time had come. */
  get failures(): number {
    return this.#failures;
  }

  /** Applies a Patch, without its deletions of chains if those are all that the kernel refuses. */
  async apply(patch: readonly Operation[], signal?: AbortSignal): Promise<Written> {
    for (const operation of patch)
      if (operation.kind === "add chain") this.#names.delete(operation.chain.name);
    try {
      return await this.#host.apply(patch, signal);
    } catch (error) {
      if (!isBusyChain(error)) throw error;
    }
    const written = await this.#host.apply(
      patch.filter(({ kind }) => kind !== "delete chain"),
      signal,
    );
    for (const operation of patch) if (operation.kind === "delete chain") this.#names.add(operation.name);
    this.#deleteSoon();
    return written;
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  #deleteSoon(): void {
    this.#cancel ??= this.#after(delayMs, () => {
      this.#cancel = null;
      void this.#delete();
    });
  }

  /** One by one: what is gone already, or in use again, is none of our business any more. */
  async #delete(): Promise<void> {
    const names = [...this.#names];
    for (const name of names) {
      if (!this.#names.delete(name)) continue;
      try {
        await this.#host.apply([{ kind: "delete chain", name }]);
      } catch (error) {
        if (!(error instanceof PatchRefused)) throw error;
        if (isBusyChain(error)) this.#failures++;
      }
    }
  }
}

function isBusyChain(error: unknown): boolean {
  return (
    error instanceof PatchRefused &&
    error.parts.every(({ operation, errno }) => operation.kind === "delete chain" && errno === "EBUSY")
  );
}
