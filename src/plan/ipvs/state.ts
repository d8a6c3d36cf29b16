// A host without any IPVS, and a Patch that leaves a host as it is.
import type { Family } from "../../model/address.ts";
import type { IpvsPatch, IpvsPlan, IpvsState } from "./types.ts";

/** What a host holds that nobody has touched. */
export function freshState(family: Family): IpvsState {
  return { family, servers: new Map(), link: "absent", addresses: new Set(), sets: new Map() };
}

export function isEmptyPatch({ grow, shrink }: IpvsPatch): boolean {
  return grow.length + shrink.length === 0;
}

/** How many servers a Plan holds. */
export function serverCount({ servers }: IpvsPlan): number {
  return servers.size;
}
