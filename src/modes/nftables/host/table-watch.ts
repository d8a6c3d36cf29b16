// Watches for changes of the table by other programs, except during large writes: the kernel would send every change back.
import { HostError } from "../../../host/error.ts";
import type { Mark } from "../../../host/nftables/commits.ts";
import type { TableHost } from "../../../host/nftables/host.ts";

export class TableWatch {
  readonly #host: Pick<TableHost, "watch" | "mark" | "changedByOthersSince">;
  #wanted: { readonly onChange: (what: string) => void; readonly signal: AbortSignal } | null = null;
  #listening: AbortController | null = null;
  /** Since when changes are not received. */
  #since: { readonly mark: Mark | null } | null = null;

  constructor(host: Pick<TableHost, "watch" | "mark" | "changedByOthersSince">) {
    this.#host = host;
  }

  /** From the next `resume` on, until the signal aborts. */
  want(onChange: (what: string) => void, signal: AbortSignal): void {
    this.#wanted = { onChange, signal };
  }

  /** What happens from here on is found out by `resume`. */
  async pause(): Promise<void> {
    if (this.#wanted === null || this.#since !== null) return;
    this.#since = { mark: await this.#host.mark() };
    this.#listening?.abort();
    this.#listening = null;
  }

  /** Resolves when changes are received again; what happened meanwhile is read after that. */
  async resume(): Promise<void> {
    if (this.#wanted === null || this.#listening !== null) return;
    const { onChange, signal } = this.#wanted;
    const listening = new AbortController();
    await this.#host.watch(onChange, AbortSignal.any([signal, listening.signal]));
    this.#listening = listening;
    const since = this.#since;
    this.#since = null;
    if (since !== null) void this.#checkSince(since.mark, onChange);
  }

  /** Not waited for: the other family may be in the middle of its own load. */
  async #checkSince(mark: Mark | null, onChange: (what: string) => void): Promise<void> {
    try {
      if (await this.#host.changedByOthersSince(mark)) onChange("nf_tables changed while we did not watch");
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      onChange(`nf_tables may have changed while we did not watch: ${error.message}`);
    }
  }
}
