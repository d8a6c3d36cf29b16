// A host whose table is in memory: it accepts and refuses Patches like a kernel, optionally like an old one.
import { countOperations, type Operation } from "../../plan/nftables/diff.ts";
import { type ElementKey, elementId, slotKey } from "../../plan/nftables/key.ts";
import type { FoundTable, NftFamily, NftSet, NftTable } from "../../plan/nftables/types.ts";
import { HostError } from "../error.ts";
import { type CountedElement, PatchRefused, type TableHost, type Written } from "./host.ts";
import { applyInMemory, isReferenced, Refused } from "./memory.ts";

export class MemoryTableHost implements TableHost {
  readonly owned = false;
  readonly #family: NftFamily;
  readonly #beforeLinux62: boolean;
  #table: NftTable | null = null;
  #broken: string | null = null;
  /** Patches that are taken before they fail. */
  #untilBroken = 0;
  /** Every Patch that was taken. */
  readonly applied: (readonly Operation[])[] = [];

  constructor(family: NftFamily, { beforeLinux62 = false }: { readonly beforeLinux62?: boolean } = {}) {
    this.#family = family;
    this.#beforeLinux62 = beforeLinux62;
  }

  /** From now on every Patch fails with this message; null: Patches work again. */
  breakDown(message: string | null): void {
    this.#broken = message;
    this.#untilBroken = 0;
  }

  /** The same after so many more Patches. */
  failAfter(patches: number, message: string): void {
    this.#broken = message;
    this.#untilBroken = patches;
  }

  get table(): NftTable | null {
    return this.#table;
  }

  /** What `destinationsInUse` returns. */
  inUse: ReadonlySet<string> = new Set();

  destinationsInUse(): Promise<ReadonlySet<string>> {
    return Promise.resolve(this.inUse);
  }

  exists(): Promise<boolean> {
    return Promise.resolve(this.#table !== null);
  }

  find(): Promise<FoundTable | null> {
    const table = this.#table;
    return Promise.resolve(table === null ? null : { table, ownership: "plain", remembered: new Map() });
  }

  /** What elements and named counters have counted, by `elementId` and by name. */
  readonly counts = new Map<string, number>();

  readPackets(set: NftSet, elements: readonly CountedElement[]): Promise<readonly (number | null)[]> {
    const values = elements.map(({ key, slot }) => {
      const id = elementId(set.name, slot === null ? key : slotKey(key, slot));
      return this.#holds(set, key, slot) ? (this.counts.get(id) ?? 0) : null;
    });
    return Promise.resolve(values);
  }

  readCounters(): Promise<ReadonlyMap<string, number>> {
    const names = this.#table?.counters ?? [];
    return Promise.resolve(new Map([...names].map((name) => [name, this.counts.get(name) ?? 0])));
  }

  /** Removes the table, as another program would. */
  flush(): void {
    this.#table = null;
    this.counts.clear();
  }

  #holds({ name }: NftSet, key: ElementKey, slot: number | null): boolean {
    if (slot === null) return this.#table?.elements.get(name)?.has(key) === true;
    return this.#table?.spreads.get(name)?.get(key)?.backends[slot] !== undefined;
  }

  /** Takes away what deleted elements have counted. */
  #removed(patch: readonly Operation[]): ReadonlyMap<string, number> {
    const removed = new Map<string, number>();
    for (const operation of patch) {
      if (operation.kind !== "delete elements" || !operation.set.counted) continue;
      for (const { key, slot } of operation.items) {
        const id = elementId(operation.set.name, slot == null ? key : slotKey(key, slot));
        removed.set(id, this.counts.get(id) ?? 0);
        this.counts.delete(id);
      }
    }
    return removed;
  }

  async apply(patch: readonly Operation[]): Promise<Written> {
    if (patch.length === 0) return { operations: 0, bytes: 0 };
    if (this.#broken !== null && this.#untilBroken-- <= 0) throw new HostError("lost", this.#broken);
    try {
      if (this.#beforeLinux62) this.#refuseFreshlyUnused(patch);
      this.#table = applyInMemory(this.#table, patch, this.#family);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      throw refusal(error, patch);
    }
    this.applied.push(patch);
    const removed = this.#removed(patch);
    const written = { operations: countOperations(patch), bytes: 0 };
    return removed.size === 0 ? written : { ...written, removed };
  }

  watch(): Promise<void> {
    return Promise.resolve();
  }

  mark(): Promise<null> {
    return Promise.resolve(null);
  }

  changedByOthersSince(): Promise<boolean> {
    return Promise.resolve(false);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Before Linux 6.2 a chain still counts as referenced in the transaction that drops its last reference. */
  #refuseFreshlyUnused(patch: readonly Operation[]): void {
    for (const [index, operation] of patch.entries()) {
      if (operation.kind !== "delete chain" || this.#table === null) continue;
      if (!isReferenced(this.#table, operation.name)) continue;
      const refused = new Refused("EBUSY", `delete chain ${operation.name}`);
      refused.operation = index;
      throw refused;
    }
  }
}

function refusal({ errno, message, operation }: Refused, patch: readonly Operation[]): PatchRefused {
  const cause = new HostError("refused", `Cannot apply ${patch.length} operations: ${message}`, {
    errno,
    refusals: [{ operation, errno, text: "" }],
  });
  return new PatchRefused(
    cause,
    patch,
    patch.map((_, from) => ({ from })),
  );
}
