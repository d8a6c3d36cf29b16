// Routes to the Plan of iptables mode: the same tables, chains and rules that kube-proxy writes.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { PortKey } from "../../model/snapshot.ts";
import { emptyPlan, withFragments } from "../../plan/iptables/plan.ts";
import type { Foundation, Fragment, IptablesPlan } from "../../plan/iptables/types.ts";
import type { PortRoutes, Routes } from "../../routing/routes.ts";
import { ownChains } from "./chains.ts";
import { type Counters, foundationOf } from "./foundation.ts";
import { frontendRules } from "./frontends.ts";
import { subjectOf } from "./subject.ts";

/** Above this many Endpoints kube-proxy leaves out the comments on the rules of single Endpoints. */
const largeCluster = 1000;

/**
 * `before` must be the Plan of the Routes before: then only changed keys are visited; without it everything is.
 * Rules written before a cluster became large keep their comments until their ServicePort changes or everything is
 * compiled again, as in kube-proxy.
 */
export function compile(before: IptablesPlan | null, routes: Routes, counters: Counters): IptablesPlan {
  const known = before !== null && sources.get(before.foundation)?.counters === counters ? before : null;
  const foundation = foundationFor(known, routes.settings, counters);
  const keys = known === null ? [...routes.ports.keys()] : [...routes.changed];
  const comments = endpointsOf(known, routes, keys) <= largeCluster;
  const changes = keys.map((key) => {
    const routed = routes.ports.get(key);
    const fragment =
      routed === undefined ? undefined : fragmentOf(routed, routes.settings, counters, comments);
    return [key, fragment] as const;
  });
  return withFragments(known ?? emptyPlan(routes.settings.family, foundation), foundation, changes);
}

/** The foundation before, if nothing it depends on changed: the same object need not be compared. */
function foundationFor(
  before: IptablesPlan | null,
  settings: FamilySettings,
  counters: Counters,
): Foundation {
  if (before !== null && sources.get(before.foundation)?.settings === settings) return before.foundation;
  const made = foundationOf(settings, counters);
  sources.set(made, { settings, counters });
  return made;
}

const sources = new WeakMap<Foundation, { settings: FamilySettings; counters: Counters }>();

function fragmentOf(
  routed: PortRoutes,
  settings: FamilySettings,
  counters: Counters,
  comments: boolean,
): Fragment {
  const subject = subjectOf(routed, settings, counters, comments);
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

/** How many Endpoints there will be: comments depend on it, so it is counted before any rule is made. */
function endpointsOf(known: IptablesPlan | null, routes: Routes, keys: readonly PortKey[]): number {
  return keys.reduce((sum, key) => {
    const now = routes.servicePorts.get(key)?.endpoints.length ?? 0;
    return sum + now - (known?.fragments.get(key)?.totals.endpoints ?? 0);
  }, known?.totals.endpoints ?? 0);
}
