// Which tracked flows of a protocol are stale in one family, and when to search for them.
import type { FlowView } from "../model/flow.ts";
import type { PortKey } from "../model/snapshot.ts";
import { GoneFrontends, usesGoneFrontend } from "./gone-frontends.ts";
import type { Routes } from "./routes.ts";
import { isStale } from "./staleflows.ts";

export type StaleFlows = {
  /** IP protocol number. */
  readonly protocol: number;
  /** Call it with all keys that changed since the last time. Returns whether flows may have become stale. */
  note(routes: Routes, changed: ReadonlySet<PortKey>): boolean;
  /** What one pass selects, by the Routes of each moment, and what to call when it was complete. */
  begin(routes: () => Routes): {
    readonly select: (flow: FlowView) => boolean;
    readonly completed: () => void;
  };
};

/** UDP flows, as kube-proxy removes them, and those of Frontends that are gone. */
export function staleUdp(): StaleFlows {
  const frontends = new GoneFrontends();
  return {
    protocol: 17,
    note: (routes, changed) => frontends.note(routes, changed),
    begin(routes) {
      const gone = new Set(frontends.all);
      return {
        select: (flow) => isStale(flow, routes()) || usesGoneFrontend(flow, gone, routes()),
        completed: () => frontends.forget(gone),
      };
    },
  };
}
