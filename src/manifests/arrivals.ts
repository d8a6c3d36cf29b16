// Counts events, and keeps when the changes they bring were triggered, until the next Snapshot takes them along.
import { type Family, families } from "../model/address.ts";
import { noTriggers, type ServiceName, type Triggers } from "../model/snapshot.ts";
import type { Slice } from "./endpointslice.ts";

export class ArrivalLog {
  /** All so far, whether or not they changed anything. */
  #services = 0;
  readonly #slices: Record<Family, number> = { ipv4: 0, ipv6: 0 };
  /** Changes by slices since the last Snapshot. */
  readonly #waiting: Record<Family, number> = { ipv4: 0, ipv6: 0 };
  readonly #triggers: Readonly<Record<Family, Map<ServiceName, number[]>>> = {
    ipv4: new Map(),
    ipv6: new Map(),
  };

  get services(): number {
    return this.#services;
  }

  get slices(): Readonly<Record<Family, number>> {
    return this.#slices;
  }

  get slicesWaiting(): Readonly<Record<Family, number>> {
    return this.#waiting;
  }

  service(): void {
    this.#services++;
  }

  slice({ family }: Slice, changed: boolean): void {
    this.#slices[family]++;
    if (changed) this.#waiting[family]++;
  }

  triggered({ family, owner }: Slice, at: number): void {
    const times = this.#triggers[family].get(owner);
    if (times === undefined) this.#triggers[family].set(owner, [at]);
    else times.push(at);
  }

  /** With a slice goes what was waiting for its Service: there is nothing left whose delay would mean anything. */
  removed({ family, owner }: Slice): void {
    this.#triggers[family].delete(owner);
  }

  take(): Triggers {
    for (const family of families) this.#waiting[family] = 0;
    const { ipv4, ipv6 } = this.#triggers;
    if (ipv4.size + ipv6.size === 0) return noTriggers;
    const triggers = { ipv4: [...ipv4.values()].flat(), ipv6: [...ipv6.values()].flat() };
    for (const family of families) this.#triggers[family].clear();
    return triggers;
  }
}
