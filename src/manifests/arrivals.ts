// Counts events, and keeps the trigger times of their changes until the next Snapshot.
import { type Family, families } from "../model/address.ts";
import { noTriggers, type ServiceName, type Triggers } from "../model/snapshot.ts";
import type { Slice } from "./endpointslice.ts";

export class ArrivalLog {
  /** All so far, whether or not they changed anything. */
  #services = 0;
  readonly #slices: Record<Family, number> = { ipv4: 0, ipv6: 0 };
  /** Changes by slices since the last Snapshot. */
  readonly #waiting: Record<Family, number> = { ipv4: 0, ipv6: 0 };
  readonly #triggers: Readonly<Record<Family, TriggerLog>> = {
    ipv4: new TriggerLog(),
    ipv6: new TriggerLog(),
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
    this.#triggers[family].add(owner, at);
  }

  /** A deleted slice drops the pending triggers of its Service: their delay would be meaningless. */
  removed({ family, owner }: Slice): void {
    this.#triggers[family].forget(owner);
  }

  take(): Triggers {
    for (const family of families) this.#waiting[family] = 0;
    const { ipv4, ipv6 } = this.#triggers;
    return ipv4.isEmpty && ipv6.isEmpty ? noTriggers : { ipv4: ipv4.take(), ipv6: ipv6.take() };
  }
}

/** In the order of arrival: a list is faster to write than a map, and entries are rarely dropped. */
class TriggerLog {
  #owners: ServiceName[] = [];
  #times: number[] = [];
  /** How many triggers there were when those of a Service were dropped. */
  readonly #forgotten = new Map<ServiceName, number>();

  get isEmpty(): boolean {
    return this.#times.length === 0;
  }

  add(owner: ServiceName, at: number): void {
    this.#owners.push(owner);
    this.#times.push(at);
  }

  forget(owner: ServiceName): void {
    if (!this.isEmpty) this.#forgotten.set(owner, this.#times.length);
  }

  take(): readonly number[] {
    const owners = this.#owners;
    const times = this.#times;
    const left =
      this.#forgotten.size === 0
        ? times
        : times.filter((_, i) => i >= (this.#forgotten.get(owners[i]!) ?? 0));
    this.#owners = [];
    this.#times = [];
    this.#forgotten.clear();
    return left;
  }
}
