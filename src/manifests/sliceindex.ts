// Which slices belong to which Service.
import type { ServiceName } from "../model/snapshot.ts";
import type { Slice } from "./endpointslice.ts";

export class SliceIndex {
  /** The only slice, as most Services have it, or all by their key. */
  readonly #byOwner = new Map<ServiceName, Slice | Map<string, Slice>>();

  /** Puts `now` where `before` was; they may belong to different Services. */
  move(before: Slice | undefined, now: Slice | undefined): void {
    if (before !== undefined) this.#delete(before);
    if (now !== undefined) this.#add(now);
  }

  /** The slices of a Service in the order of their names. */
  of(owner: ServiceName): readonly Slice[] {
    const found = this.#byOwner.get(owner);
    if (found === undefined) return none;
    if (!(found instanceof Map)) return [found];
    return [...found.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  #add(slice: Slice): void {
    const found = this.#byOwner.get(slice.owner);
    if (found === undefined) this.#byOwner.set(slice.owner, slice);
    else if (found instanceof Map) found.set(slice.key, slice);
    else
      this.#byOwner.set(
        slice.owner,
        new Map([
          [found.key, found],
          [slice.key, slice],
        ]),
      );
  }

  #delete({ owner, key }: Slice): void {
    const found = this.#byOwner.get(owner);
    if (!(found instanceof Map)) {
      this.#byOwner.delete(owner);
      return;
    }
    found.delete(key);
    if (found.size > 1) return;
    const [last] = found.values();
    this.#byOwner.set(owner, last!);
  }
}

const none: readonly Slice[] = [];
