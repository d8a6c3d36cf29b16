// Routes → the nftables Plan: constant rules, and elements for everything that changes.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { Cidr } from "../../model/address.ts";
import { emptyPlan, tableOf, withFragments } from "../../plan/nftables/plan.ts";
import type { Foundation, Fragment, NftPlan, NftTable } from "../../plan/nftables/types.ts";
import type { Routes } from "../../routing/routes.ts";
import { foundation } from "./foundation.ts";
import { mostSharedSlots } from "./large.ts";
import { compilePort } from "./port.ts";

/**
 * `before` must be the Plan of the Routes before: then only changed keys are visited; without it everything is. A
 * ServicePort that would need more slots than `limit` has pools of its own.
 */
export function compile(before: NftPlan | null, routes: Routes, limit = mostSharedSlots): NftPlan {
  const base = foundationFor(before, routes);
  const keys = before === null ? routes.ports.keys() : routes.changed;
  const changes = [...keys].map((key) => {
    const port = routes.ports.get(key);
    return [key, port === undefined ? undefined : compilePort(port, routes.settings, limit)] as const;
  });
  return withFragments(before ?? emptyPlan(base), base, changes);
}

/** The table of the Plan alone, for one use: nothing is kept that would make a change cheap. */
export function compileTable({ settings, serviceCIDRs, ports }: Routes, limit = mostSharedSlots): NftTable {
  return tableOf(foundation(settings, serviceCIDRs), fragmentsOf());

  function* fragmentsOf(): Generator<Fragment> {
    for (const port of ports.values()) yield compilePort(port, settings, limit);
  }
}

/** The foundation before, if nothing it depends on changed: the same object need not be compared. */
function foundationFor(before: NftPlan | null, { settings, serviceCIDRs }: Routes): Foundation {
  const known = before === null ? undefined : sources.get(before.foundation);
  if (known?.settings === settings && known.serviceCIDRs === serviceCIDRs) return before!.foundation;
  const made = foundation(settings, serviceCIDRs);
  sources.set(made, { settings, serviceCIDRs });
  return made;
}

const sources = new WeakMap<Foundation, { settings: FamilySettings; serviceCIDRs: readonly Cidr[] }>();
