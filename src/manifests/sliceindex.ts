// Which slices belong to which Service.
import type { ServiceName } from "../model/snapshot.ts";
import type { Slice } from "./endpointslice.ts";

export class SliceIndex {
  readonly #byOwner = new Map<ServiceName, Map<string, Slice>>();

  /** Puts `now` where `before` was; they may belong to different Services. */
  move(key: string, before: Slice | undefined, now: Slice | undefined): void {
    if (before !== undefined && before.owner !== now?.owner) this.#drop(before.owner, key);
    if (now === undefined) return;
    const slices = this.#byOwner.get(now.owner);
    if (slices === undefined) this.#byOwner.set(now.owner, new Map([[key, now]]));
    else slices.set(key, now);
  }

  /** The slices of a Service in the order of their names. */
  of(owner: ServiceName): readonly Slice[] {
    const slices = this.#byOwner.get(owner);
    if (slices === undefined) return [];
    if (slices.size === 1) return [...slices.values()];
    return [...slices.keys()].sort().map((key) => slices.get(key)!);
  }

  #drop(owner: ServiceName, key: string): void {
    const slices = this.#byOwner.get(owner);
    slices?.delete(key);
    if (slices?.size === 0) this.#byOwner.delete(owner);
  }
}
