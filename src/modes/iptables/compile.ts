// Routes to the Plan of iptables mode: the same tables, chains and rules that kube-proxy writes.
import { keyed } from "../../model/keyed.ts";
import type { PortKey } from "../../model/snapshot.ts";
import type { Fragment, Plan, Totals } from "../../plan/iptables/types.ts";
import type { PortRoutes, Routes } from "../../routing/routes.ts";
import { baseOf, type Counters } from "./base.ts";
import { ownChains } from "./chains.ts";
import { frontendRules } from "./frontends.ts";
import { subjectOf } from "./subject.ts";

/** Above this many Endpoints kube-proxy leaves out the comments on the rules of single Endpoints. */
const largeCluster = 1000;

/** What compiling remembers to be quick the next time. */
export type Compiled = { readonly plan: Plan; readonly routes: Routes; readonly counters: Counters };

/**
 * The Plan of Routes. `before` must be what was compiled from the Routes before: then only changed ServicePorts are
 * visited; without it, or when settings differ, all are. Rules written before a cluster became large keep their comments until
 * their Service changes or everything is compiled anew, as kube-proxy has it.
 */
export function compile(before: Compiled | null, routes: Routes, counters: Counters): Compiled {
  const known =
    before !== null && before.routes.settings === routes.settings && sameCounters(before.counters, counters)
      ? before.plan
      : null;
  const keys = known === null ? [...routes.ports.keys()] : [...routes.changed];
  const comments = endpointsOf(known, routes, keys) <= largeCluster;
  const updates = keys.map(
    (key) => [key, fragmentOf(routes.ports.get(key), routes, counters, comments)] as const,
  );
  const plan: Plan = {
    family: routes.settings.family,
    base: known?.base ?? baseOf(routes.settings, counters),
    fragments: (known?.fragments ?? keyed<Fragment>()).with(updates),
    totals: updates.reduce(
      (sum, [key, fragment]) => changed(sum, known?.fragments.get(key)?.totals, fragment?.totals),
      known?.totals ?? none,
    ),
  };
  return { plan, routes, counters };
}

const none: Totals = { filterRules: 0, natRules: 0, endpoints: 0 };

function fragmentOf(
  routed: PortRoutes | undefined,
  routes: Routes,
  counters: Counters,
  comments: boolean,
): Fragment | undefined {
  if (routed === undefined) return undefined;
  const subject = subjectOf(routed, routes.settings, counters, comments);
  const placed = frontendRules(subject);
  const chains = ownChains(subject);
  const inNat = placed.filter(({ table }) => table === "nat").length;
  const totals = {
    filterRules: placed.length - inNat,
    natRules: chains.reduce((sum, { rules }) => sum + rules.length, inNat),
    endpoints: routed.port.endpoints.length,
  };
  return { key: routed.port.key, placed, chains, totals };
}

/** How many Endpoints there will be: known before anything is written, as the comments depend on it. */
function endpointsOf(known: Plan | null, routes: Routes, keys: readonly PortKey[]): number {
  return keys.reduce(
    (sum, key) =>
      sum +
      (routes.ports.get(key)?.port.endpoints.length ?? 0) -
      (known?.fragments.get(key)?.totals.endpoints ?? 0),
    known?.totals.endpoints ?? 0,
  );
}

function changed(sum: Totals, old: Totals = none, now: Totals = none): Totals {
  return {
    filterRules: sum.filterRules - old.filterRules + now.filterRules,
    natRules: sum.natRules - old.natRules + now.natRules,
    endpoints: sum.endpoints - old.endpoints + now.endpoints,
  };
}

function sameCounters(a: Counters, b: Counters): boolean {
  return a.invalidDropped === b.invalidDropped && a.localhostNodePorts === b.localhostNodePorts;
}
