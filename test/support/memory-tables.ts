// Packet-filter tables of IPv4 in memory, as a host for tests of drivers.
import type { HostError } from "../../src/host/error.ts";
import type { IptablesHost } from "../../src/host/iptables/host.ts";
import { applyInMemory, freshTables } from "../../src/host/iptables/memory.ts";
import { countOperations } from "../../src/plan/iptables/diff.ts";
import type { HostTables, IptablesPatch } from "../../src/plan/iptables/types.ts";

/** `restores` is how often something was written, which is also in the log. */
export class MemoryTables implements IptablesHost {
  readonly family = "ipv4";
  readonly backEnd = "legacy";
  tables: HostTables = freshTables("ipv4");
  restores = 0;
  #failing: HostError | null = null;
  readonly #log: string[];

  constructor(log: string[]) {
    this.#log = log;
  }

  fail(error: HostError | null): void {
    this.#failing = error;
  }

  read(): Promise<HostTables> {
    return Promise.resolve(this.tables);
  }

  apply(patch: IptablesPatch): Promise<{ operations: number; bytes: number }> {
    if (this.#failing !== null) return Promise.reject(this.#failing);
    if (patch.steps.length > 0) {
      this.restores++;
      this.#log.push("restore");
      this.tables = applyInMemory(this.tables, patch);
    }
    return Promise.resolve({ operations: countOperations(patch), bytes: 0 });
  }

  isOwn(): boolean {
    return true;
  }
}
