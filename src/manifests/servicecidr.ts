// A ServiceCIDR becomes the networks that it declares to be Service addresses.
import type { Cidr } from "../model/address.ts";
import { type ByFamily, cidrsOf } from "./addresses.ts";
import type { Identity } from "./identity.ts";
import { fields, hasLegalNames, type Parsed, parsed, reportOn, texts } from "./read.ts";

export type ServiceCIDR = ByFamily<readonly Cidr[]>;

export function parseServiceCIDR(who: Identity, object: unknown): Parsed<ServiceCIDR> {
  const report = reportOn(who);
  const raw = fields(report, object, "", "");
  if (!hasLegalNames(report)) return parsed<ServiceCIDR>(report, null);
  const spec = fields(report, raw.spec, "", "spec");
  return parsed(report, cidrsOf(report, texts(report, spec.cidrs, "spec", "cidrs"), "spec.cidrs"));
}
