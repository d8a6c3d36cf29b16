// Which slices belong to which Service.
import type { ServiceName } from "../model/snapshot.ts";
import type { Slice } from "./endpointslice.ts";

export class SliceIndex {
  /** In the order of their names. Most Services have one or two. */
  readonly #byOwner = new Map<ServiceName, readonly Slice[]>();

  /** Puts `now` where `before` was; they may belong to different Services. */
  move(before: Slice | undefined, now: Slice | undefined): void {
    if (before !== undefined) this.#set(before.owner, without(this.of(before.owner), before));
    if (now !== undefined) this.#set(now.owner, withOne(this.of(now.owner), now));
  }

  /** The slices of a Service in the order of their names. */
  of(owner: ServiceName): readonly Slice[] {
    return this.#byOwner.get(owner) ?? none;
  }

  #set(owner: ServiceName, slices: readonly Slice[]): void {
    if (slices.length === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, slices);
  }
}

const none: readonly Slice[] = [];

function without(slices: readonly Slice[], slice: Slice): readonly Slice[] {
  return slices.filter((other) => other.key !== slice.key);
}

function withOne(slices: readonly Slice[], slice: Slice): readonly Slice[] {
  if (slices.length === 0) return [slice];
  const after = slices.findIndex((other) => other.key > slice.key);
  return after < 0 ? [...slices, slice] : slices.toSpliced(after, 0, slice);
}
