// Makes the record of a change from the Snapshots before and after it.
import type { Causes, PortKey, Snapshot } from "../model/snapshot.ts";
import { type Change, changeBetween, type Keys } from "./change.ts";
import type { Moment, Recorded } from "./log.ts";

/** Clocks drift and are slewed; a larger difference from the monotonic clock is a step. */
const stepMs = 1000;

/** What one Snapshot changed; pauses between steps. null: nothing that the history is about. */
export function* recordOf(
  before: Snapshot,
  now: Snapshot,
  clockStepMs: number,
): Generator<void, Recorded | null> {
  const keys = { ipv4: now.ipv4.changed, ipv6: now.ipv6.changed };
  const undo = yield* changeBetween(now, before, keys);
  if (undo === null) return null;
  const { objects: causes, more: moreCauses } = now.causes;
  const pods = podsOf(undo, now.causes);
  return { origin: "watch", clockStepMs, causes, moreCauses, ...(pods === null ? {} : { pods }), undo };
}

/** The names of the pods whose Endpoints changed, as far as they are known; null: none is. */
function podsOf({ ports = {} }: Change, { pods }: Causes): Readonly<Record<string, string>> | null {
  if (pods === undefined) return null;
  const names = pods();
  const found: [string, string][] = [];
  for (const [, patch] of Object.values(ports).flat()) {
    if (patch === null || "whole" in patch) continue;
    for (const address of [
      ...(patch.out ?? []).map(([each]) => each),
      ...(patch.put ?? []).map((each) => each.address),
    ])
      if (names.has(address)) found.push([address, names.get(address)!]);
  }
  return found.length === 0 ? null : Object.fromEntries(found);
}

/** What changed while no daemon was running: every ServicePort of both is compared. */
export function* restartRecord(
  before: Snapshot,
  now: Snapshot,
): Generator<void, { readonly undo: Change; readonly redo: Change } | null> {
  const undo = yield* changeBetween(now, before, allKeys(before, now));
  if (undo === null) return null;
  const redo = yield* changeBetween(before, now, keysIn(undo));
  return { undo, redo: redo! };
}

/** The ServicePorts that a change is about. */
export function keysIn({ ports = {} }: Change): Keys {
  const of = (family: "ipv4" | "ipv6") => (ports[family] ?? []).map(([key]) => key);
  return { ipv4: of("ipv4"), ipv6: of("ipv6") };
}

/** By how much the wall clock was set between two moments; 0: it was not. */
export function clockStepBetween(earlier: Moment | null, later: Moment): number {
  if (earlier === null) return 0;
  const step = Math.round(later.at - earlier.at - (later.steadyAt - earlier.steadyAt));
  return Math.abs(step) > stepMs ? step : 0;
}

function allKeys(before: Snapshot, now: Snapshot): Keys {
  const of = (family: "ipv4" | "ipv6") => unique(before[family].ports.keys(), now[family].ports);
  return { ipv4: of("ipv4"), ipv6: of("ipv6") };
}

function* unique(some: Iterable<PortKey>, others: Snapshot["ipv4"]["ports"]): Generator<PortKey> {
  const seen = new Set<PortKey>();
  for (const key of some) {
    seen.add(key);
    yield key;
  }
  for (const key of others.keys()) if (!seen.has(key)) yield key;
}
