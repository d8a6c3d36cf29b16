// Packets, bytes and active connections of Services, from conntrack: ended flows as the kernel reports them, current ones by dumps.
import { HostError } from "../../host/error.ts";
import { type FlowQuery, readFlows } from "../../host/netlink/conntrack.ts";
import { explained } from "../../host/netlink/conntrack-stats.ts";
import { watchFlows } from "../../host/netlink/flow-events.ts";
import type { Place } from "../../host/netlink/socket.ts";
import type { Family } from "../../model/address.ts";
import type { Moment } from "../../model/clock.ts";
import { type CountGap, GapLog } from "../../model/count-gaps.ts";
import type { FlowView } from "../../model/flow.ts";
import { endpointKey } from "../../model/snapshot.ts";
import type { Behavior } from "../../routing/behavior.ts";
import type { Routes } from "../../routing/routes.ts";
import {
  type Attribute,
  type AttributionOptions,
  attributor,
  endpointsByKey,
} from "../../traffic/attribute.ts";
import { type FlowNumbers, FlowTotals } from "../../traffic/flow-totals.ts";
import { flowName } from "./report.ts";

export type FlowAccountOptions = Pick<AttributionOptions, "conntrack"> & {
  readonly behavior: Behavior;
  /** Whether sums are also kept for each endpoint. */
  readonly endpoints: boolean;
  readonly place: Place;
  readonly now: () => Moment;
};

/** A dump of a table that changes much is repeated; then what it missed is left to the next one. */
const attempts = 3;

export class FlowAccounts {
  readonly #options: FlowAccountOptions;
  readonly #families = new Map<Family, FamilyAccounts>();
  readonly #gaps = new GapLog();
  #lastDump: Moment | null = null;
  /** Since when events may be missing: the dump before they were lost; null: none was lost, or nothing was read before. */
  #lostSince: Moment | null = null;

  constructor(options: FlowAccountOptions) {
    this.#options = options;
  }

  get gaps(): readonly CountGap[] {
    return this.#gaps.all;
  }

  /** Throws HostError when the kernel does not send events. */
  watch(signal: AbortSignal): Promise<void> {
    return watchFlows(
      {
        visit: (_, flow) => this.ended(flow.family, flow),
        lost: () => this.lost(),
      },
      signal,
      { ...this.#options.place, events: ["destroy"] },
    );
  }

  /** The Routes by which flows belong to Services from now on. */
  setRoutes(routes: Routes): void {
    const { family } = routes.settings;
    const known = this.#families.get(family);
    if (known === undefined) this.#families.set(family, new FamilyAccounts(routes, this.#options));
    else known.setRoutes(routes);
  }

  ended(family: Family, flow: FlowView): void {
    this.#families.get(family)?.ended(flow);
  }

  /** Events were lost: what happened since the last dump is not known. */
  lost(): void {
    this.#lostSince ??= this.#lastDump;
  }

  /** Reads all flows. Throws HostError. */
  async dump(signal: AbortSignal): Promise<void> {
    const lostSince = this.#lostSince;
    let isIncomplete = false;
    for (const accounts of this.#families.values())
      isIncomplete = (await accounts.dump(lostSince !== null, signal)) || isIncomplete;
    const now = this.#options.now();
    const from = lostSince ?? (isIncomplete ? this.#lastDump : null);
    if (from !== null) this.#gaps.add(from, now);
    // What was lost during this dump began before it.
    if (lostSince !== null) this.#lostSince = null;
    this.#lastDump = now;
  }

  of(family: Family, name: string): FlowNumbers | null {
    return this.#families.get(family)?.totals.of(name) ?? null;
  }
}

/** Those of one IP family. */
class FamilyAccounts {
  readonly totals = new FlowTotals();
  readonly #options: FlowAccountOptions;
  #routes: Routes;
  #attribute: Attribute;

  constructor(routes: Routes, options: FlowAccountOptions) {
    this.#options = options;
    this.#routes = routes;
    this.#attribute = attributor(routes, options.behavior, options);
  }

  setRoutes(routes: Routes): void {
    if (routes === this.#routes) return;
    this.#routes = routes;
    this.#attribute = attributor(routes, this.#options.behavior, this.#options);
  }

  ended(flow: FlowView): void {
    const names = this.#namesOf(flow);
    if (names.length > 0) this.totals.end(flow, names);
  }

  async dump(lost: boolean, signal: AbortSignal): Promise<boolean> {
    const query: FlowQuery = {
      family: this.#routes.settings.family,
      select: (flow) => {
        const names = this.#namesOf(flow);
        if (names.length > 0) this.totals.add(flow, names);
        return false;
      },
    };
    for (let attempt = 1; ; attempt++) {
      this.totals.begin();
      try {
        for await (const _ of readFlows(query, this.#options.place, signal));
        break;
      } catch (error) {
        const isInterrupted = error instanceof HostError && error.errno === "EINTR";
        if (!isInterrupted) explained(error);
        if (attempt === attempts) break;
      }
    }
    return this.totals.finish((name) => this.#isKnown(name), lost);
  }

  /** What a flow counts for; nothing when it belongs to no Service, or was not translated. */
  #namesOf(flow: FlowView): readonly string[] {
    const found = this.#attribute(flow);
    if (found.kind !== "service" || found.to.kind === "untranslated") return [];
    const { key } = found.routed.port;
    if (!this.#options.endpoints || found.to.kind !== "endpoint") return [flowName(key)];
    return [flowName(key), flowName(key, endpointKey(found.to.endpoint))];
  }

  #isKnown(name: string): boolean {
    const space = name.indexOf(" ");
    const port = this.#routes.servicePorts.get(space < 0 ? name : name.slice(0, space));
    if (port === undefined || space < 0) return port !== undefined;
    return endpointsByKey(port).has(name.slice(space + 1));
  }
}
