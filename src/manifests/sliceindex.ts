// Which slices belong to which Service.
import type { ServiceName } from "../model/snapshot.ts";
import type { Slice } from "./endpointslice.ts";

export class SliceIndex {
  /** The only slice, as most Services have it, or all in the order of their names. */
  readonly #byOwner = new Map<ServiceName, Slice | readonly Slice[]>();

  /** Puts `now` where `before` was; they may belong to different Services. */
  move(before: Slice | undefined, now: Slice | undefined): void {
    if (before !== undefined) this.#set(before.owner, without(this.of(before.owner), before));
    if (now !== undefined) this.#set(now.owner, withOne(this.of(now.owner), now));
  }

  /** The slices of a Service in the order of their names. */
  of(owner: ServiceName): readonly Slice[] {
    const found = this.#byOwner.get(owner);
    if (found === undefined) return none;
    return isList(found) ? found : [found];
  }

  #set(owner: ServiceName, slices: readonly Slice[]): void {
    if (slices.length === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, slices.length === 1 ? slices[0]! : slices);
  }
}

const none: readonly Slice[] = [];

function isList(found: Slice | readonly Slice[]): found is readonly Slice[] {
  return Array.isArray(found);
}

function without(slices: readonly Slice[], slice: Slice): readonly Slice[] {
  return slices.filter((other) => other.key !== slice.key);
}

function withOne(slices: readonly Slice[], slice: Slice): readonly Slice[] {
  if (slices.length === 0) return [slice];
  const after = slices.findIndex((other) => other.key > slice.key);
  return after < 0 ? [...slices, slice] : slices.toSpliced(after, 0, slice);
}
