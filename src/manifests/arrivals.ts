// Counts events, and keeps when the changes they bring were triggered, until the next Snapshot takes them along.
import { type Family, families } from "../model/address.ts";
import { type Arrivals, noArrivals, type ServiceName } from "../model/snapshot.ts";
import type { Slice } from "./endpointslice.ts";

export class ArrivalLog {
  #serviceEvents = 0;
  #sliceEvents = 0;
  #serviceChanges = 0;
  #sliceChanges = 0;
  readonly #triggers: Readonly<Record<Family, Map<ServiceName, number[]>>> = {
    ipv4: new Map(),
    ipv6: new Map(),
  };

  service(changed: boolean): void {
    this.#serviceEvents++;
    if (changed) this.#serviceChanges++;
  }

  slice(changed: boolean): void {
    this.#sliceEvents++;
    if (changed) this.#sliceChanges++;
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

  take(): Arrivals {
    const { ipv4, ipv6 } = this.#triggers;
    if (this.#serviceEvents + this.#sliceEvents === 0) return noArrivals;
    const arrivals: Arrivals = {
      serviceEvents: this.#serviceEvents,
      sliceEvents: this.#sliceEvents,
      serviceChanges: this.#serviceChanges,
      sliceChanges: this.#sliceChanges,
      triggeredAt: { ipv4: [...ipv4.values()].flat(), ipv6: [...ipv6.values()].flat() },
    };
    this.#serviceEvents = 0;
    this.#sliceEvents = 0;
    this.#serviceChanges = 0;
    this.#sliceChanges = 0;
    for (const family of families) this.#triggers[family].clear();
    return arrivals;
  }
}
