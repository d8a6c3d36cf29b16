// A host without any IPVS.
import type { Family } from "../../model/address.ts";
import type { IpvsState } from "./types.ts";

/** The state of an unmodified host. */
export function freshState(family: Family): IpvsState {
  return { family, servers: new Map(), link: "absent", addresses: new Set(), sets: new Map() };
}
