// Sums what virtual servers have counted for each ServicePort: no sum decreases, and lost counts are reported as unknown.
import type { Moment } from "../../model/clock.ts";
import { type CountGap, GapLog } from "../../model/count-gaps.ts";
import type { PortKey } from "../../model/snapshot.ts";
import type { DestinationKey, IpvsPlan, ServerConnections, ServerKey } from "../../plan/ipvs/types.ts";
import type { PortCounts } from "../driver.ts";

/** What a virtual server had counted when it was last read. */
type Value = { connections: number; readonly destinations: Map<DestinationKey, number> };

type Sums = { connections: number; readonly endpoints: Map<DestinationKey, number> };

export class ServerCounts {
  readonly #values = new Map<ServerKey, Value>();
  readonly #ports = new Map<PortKey, Sums>();
  readonly #gaps = new GapLog();
  #lastRead: Moment | null = null;

  get gaps(): readonly CountGap[] {
    return this.#gaps.all;
  }

  /** Whether this server was counted before. */
  isKnown(server: ServerKey): boolean {
    return this.#values.has(server);
  }

  /** All servers were read. Those that belong to no ServicePort of the Plan do not count. */
  read(found: ReadonlyMap<ServerKey, ServerConnections>, plan: IpvsPlan, now: Moment): void {
    for (const [key, server] of found) {
      const owner = plan.servers.get(key)?.[0]?.owner;
      if (owner !== undefined) this.#take(key, owner, server, now);
    }
    for (const key of this.#values.keys()) {
      if (found.has(key)) continue;
      if (plan.servers.get(key) !== undefined) this.#lost(now);
      this.#values.delete(key);
    }
    for (const key of this.#ports.keys()) this.#keepCurrent(key, plan);
    this.#lastRead = now;
  }

  /** A server was made: if it had been there before, what it counted since the last read is lost. */
  made(server: ServerKey, now: Moment): void {
    if (this.#values.delete(server)) this.#lost(now);
  }

  /** A server is about to be deleted, and has counted this much; null: that is not known. */
  leaves(server: ServerKey, owner: PortKey, connections: number | null, now: Moment): void {
    if (connections === null) this.#lost(now);
    else this.#take(server, owner, { connections, destinations: null }, now);
    this.#values.delete(server);
  }

  /** `endpoints`: whether real servers are counted too. */
  counts(endpoints: boolean): ReadonlyMap<PortKey, PortCounts> {
    return new Map(
      [...this.#ports].map(([key, sums]) => [
        key,
        {
          connections: sums.connections,
          refused: null,
          outOfRange: null,
          endpoints: endpoints ? new Map(sums.endpoints) : null,
        },
      ]),
    );
  }

  #take(key: ServerKey, owner: PortKey, { connections, destinations }: ServerConnections, now: Moment): void {
    const value = this.#values.get(key) ?? { connections: 0, destinations: new Map() };
    const sums = this.#ports.get(owner) ?? { connections: 0, endpoints: new Map() };
    const isSetBack = connections < value.connections;
    if (isSetBack) this.#lost(now);
    sums.connections += connections - (isSetBack ? 0 : value.connections);
    for (const [at, count] of destinations ?? []) {
      const before = value.destinations.get(at) ?? 0;
      sums.endpoints.set(at, (sums.endpoints.get(at) ?? 0) + count - (count < before ? 0 : before));
    }
    this.#values.set(key, { connections, destinations: new Map(destinations ?? value.destinations) });
    this.#ports.set(owner, sums);
  }

  /** A ServicePort that is gone is forgotten, and so are endpoints that it no longer has. */
  #keepCurrent(key: PortKey, plan: IpvsPlan): void {
    const fragment = plan.fragments.get(key);
    if (fragment === undefined) {
      this.#ports.delete(key);
      return;
    }
    const { endpoints } = this.#ports.get(key)!;
    if (endpoints.size === 0) return;
    const wanted = new Set(fragment.servers.flatMap(({ destinations }) => [...destinations.keys()]));
    for (const at of endpoints.keys()) if (!wanted.has(at)) endpoints.delete(at);
  }

  #lost(now: Moment): void {
    if (this.#lastRead !== null) this.#gaps.add(this.#lastRead, now);
  }
}
