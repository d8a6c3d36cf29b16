// Routes a large change in slices, so that no other work of the process waits for all of it.
import type { FamilySettings } from "../config/resolve/settings.ts";
import { type Keyed, keyed } from "../model/keyed.ts";
import {
  type FamilySnapshot,
  isUrgent,
  type PortKey,
  type ServiceName,
  type ServicePort,
} from "../model/snapshot.ts";
import { nextTurn } from "../model/steps.ts";
import { type Routes, route } from "../routing/routes.ts";

/** About as many ServicePorts and Endpoints as are routed, compiled and encoded in 10 ms. */
const sliceSize = 4096;

/**
 * The Routes of a Snapshot, as `route` returns them; `each` receives the Routes of each slice, which derive from each
 * other. A change that fits one slice, and a change of the settings, is routed as a whole.
 */
export async function routeInSlices(
  before: Routes | null,
  snapshot: FamilySnapshot,
  settings: FamilySettings,
  each: (routes: Routes) => Promise<void>,
): Promise<Routes> {
  if (before !== null && before.settings !== settings) return route(before, snapshot, settings);
  const slices = slicesOf(before === null ? snapshot.ports.keys() : snapshot.changed, snapshot);
  if (slices.length <= 1) return route(before, snapshot, settings);
  let routes = before ?? route(null, { ...snapshot, ports: keyed<ServicePort>() }, settings);
  let prepared = Promise.resolve();
  const changed = new Set<PortKey>();
  for (const [i, slice] of slices.entries()) {
    // The last slice leads to the Snapshot: no other map of all ServicePorts is kept.
    const ports = i === slices.length - 1 ? snapshot.ports : withSlice(routes, slice, snapshot);
    routes = route(routes, { ...snapshot, ports, changed: slice }, settings);
    for (const key of routes.changed) changed.add(key);
    // The next slice is routed while the host takes this one.
    await prepared;
    prepared = each(routes);
    // Awaited with the next slice.
    prepared.catch(() => {});
    await nextTurn();
  }
  await prepared;
  return { ...routes, changed };
}

/** The ServicePorts routed so far, with those of the next slice. */
function withSlice(
  routes: Routes,
  slice: ReadonlySet<PortKey>,
  { ports }: FamilySnapshot,
): Keyed<ServicePort> {
  return routes.servicePorts.with(new Map(Iterator.from(slice).map((key) => [key, ports.get(key)] as const)));
}

/** Urgent ServicePorts first; all ports of a Service are in one slice. */
function slicesOf(keys: Iterable<PortKey>, { ports }: FamilySnapshot): readonly ReadonlySet<PortKey>[] {
  const all = [...keys];
  const urgent = all.filter(isUrgent);
  const inOrder = urgent.length === 0 ? all : [...urgent, ...all.filter((key) => !isUrgent(key))];
  const slices: Set<PortKey>[] = [];
  let room = 0;
  let service: ServiceName | undefined;
  for (const key of inOrder) {
    const port = ports.get(key);
    if (slices.length === 0 || (room <= 0 && port?.service !== service)) {
      slices.push(new Set());
      room = sliceSize;
    }
    slices.at(-1)!.add(key);
    room -= 4 + (port?.endpoints.length ?? 0);
    service = port?.service;
  }
  return slices;
}
