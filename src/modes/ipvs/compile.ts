// Routes to the Plan of ipvs mode: virtual servers, addresses, sets, and the few rules that match them.
import type { ValidConfig } from "../../config/config.ts";
import type { FamilySettings } from "../../config/resolve/settings.ts";
import { type Cidr, familyOf, parseCidr } from "../../model/address.ts";
import type { PortKey } from "../../model/snapshot.ts";
import * as tables from "../../plan/iptables/plan.ts";
import type { Foundation, IptablesPlan, Fragment as TablesFragment } from "../../plan/iptables/types.ts";
import { emptyPlan, withFragments } from "../../plan/ipvs/plan.ts";
import type { IpvsPlan } from "../../plan/ipvs/types.ts";
import type { Routes } from "../../routing/routes.ts";
import { foundationOf, type InUse } from "./foundation.ts";
import { type Compiled, compilePort } from "./port.ts";
import { type Role, roles, setName, setsOf } from "./sets.ts";

/** Same options, same Plan; another object means that everything is compiled again. */
export type IpvsOptions = {
  /** Empty: `rr`. */
  readonly scheduler: string;
  readonly excludeCIDRs: readonly Cidr[];
};

export function optionsOf({ ipvs }: Pick<ValidConfig, "ipvs">): IpvsOptions {
  const excludeCIDRs = (ipvs.excludeCIDRs ?? []).flatMap((cidr) => parseCidr(cidr) ?? []);
  return { scheduler: ipvs.scheduler, excludeCIDRs };
}

/** `before` must be the Plan of the Routes before: then only changed keys are visited; without it everything is. */
export function compile(before: IpvsPlan | null, routes: Routes, options: IpvsOptions): IpvsPlan {
  const { settings } = routes;
  const keys = before === null ? [...routes.ports.keys()] : [...routes.changed];
  const compiled = keys.map((key) => {
    const routed = routes.ports.get(key);
    return [
      key,
      routed === undefined ? null : compilePort(routed, settings, options.scheduler || "rr"),
    ] as const;
  });
  const plan = withFragments(
    before ?? firstPlan(settings, options),
    compiled.map(([key, port]) => [key, port?.fragment] as const),
  );
  const foundation = foundationFor(before, plan, settings);
  return { ...plan, tables: withRules(plan.tables, foundation, compiled) };
}

function firstPlan(settings: FamilySettings, { excludeCIDRs }: IpvsOptions): IpvsPlan {
  const { family } = settings;
  const excluded = excludeCIDRs.filter((cidr) => familyOf(cidr) === family);
  const constants = { sets: setsOf(family), excluded };
  return emptyPlan(family, constants, tables.emptyPlan(family, foundationOf(settings, new Set())));
}

/** The foundation before, if nothing it depends on changed: the same object need not be compared. */
function foundationFor(before: IpvsPlan | null, { sizes }: IpvsPlan, settings: FamilySettings): Foundation {
  const inUse: InUse = new Set(roles.filter((role) => (sizes.get(setName(role, settings.family)) ?? 0) > 0));
  const known = before === null ? undefined : sources.get(before.tables.foundation);
  if (before !== null && known?.settings === settings && isSameSet(known.inUse, inUse))
    return before.tables.foundation;
  const made = foundationOf(settings, inUse);
  sources.set(made, { settings, inUse });
  return made;
}

const sources = new WeakMap<Foundation, { settings: FamilySettings; inUse: InUse }>();

function isSameSet(a: ReadonlySet<Role>, b: ReadonlySet<Role>): boolean {
  return a.size === b.size && [...a].every((role) => b.has(role));
}

/** Few ServicePorts have rules of their own. */
function withRules(
  before: IptablesPlan,
  foundation: Foundation,
  compiled: readonly (readonly [PortKey, Compiled | null])[],
): IptablesPlan {
  const changes = compiled.flatMap(([key, port]): (readonly [PortKey, TablesFragment | undefined])[] => {
    const placed = port?.placed ?? [];
    if (placed.length === 0) return before.fragments.has(key) ? [[key, undefined]] : [];
    const totals = { filterRules: placed.length, natRules: 0, endpoints: 0 };
    return [[key, { key, placed, chains: [], totals }]];
  });
  return tables.withFragments(before, foundation, changes);
}
