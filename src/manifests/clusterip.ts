// The cluster IP of a Service in each family.
import { type Address, type Family, familyOf, parseAddress } from "../model/address.ts";
import { quoted } from "../model/problem.ts";
import type { ByFamily } from "./addresses.ts";
import type { Raw } from "./objects.ts";
import { addProblem, type Report, texts } from "./read.ts";

/** Without `ipFamilies` the singular field counts in its own family; otherwise the index of the family selects. */
export function clusterIPsOf(report: Report, spec: Raw, single: string): ByFamily<Address | null> {
  const families = texts(report, spec.ipFamilies, "spec", "ipFamilies");
  const listed = texts(report, spec.clusterIPs, "spec", "clusterIPs");
  if (families.length === 0) {
    const address = clusterIPOf(report, single, null);
    return { ipv4: ofFamily(address, "ipv4"), ipv6: ofFamily(address, "ipv6") };
  }
  // The API server copies clusterIP into clusterIPs; a manifest from a file may have the first alone.
  const candidates = listed.length === 0 ? [single] : listed;
  return {
    ipv4: selected(report, candidates, families.indexOf(names.ipv4), "ipv4"),
    ipv6: selected(report, candidates, families.indexOf(names.ipv6), "ipv6"),
  };
}

const names = { ipv4: "IPv4", ipv6: "IPv6" } as const;

function selected(
  report: Report,
  candidates: readonly string[],
  index: number,
  family: Family,
): Address | null {
  const candidate = index < 0 ? undefined : candidates[index];
  if (candidate === undefined) return null;
  const address = clusterIPOf(report, candidate, index);
  if (address !== null && familyOf(address) !== family) {
    addProblem(report, "invalid-address", fieldOf(index), `is ${address}, which is not ${names[family]}`);
  }
  return ofFamily(address, family);
}

/** `index` among `clusterIPs`; null for the singular field. */
function clusterIPOf(report: Report, written: string, index: number | null): Address | null {
  const address = parseAddress(written);
  if (address === null)
    addProblem(report, "invalid-address", fieldOf(index), `is ${quoted(written)}, not an IP address`);
  return address;
}

function fieldOf(index: number | null): string {
  return index === null ? "spec.clusterIP" : `spec.clusterIPs[${index}]`;
}

function ofFamily(address: Address | null, family: Family): Address | null {
  return address !== null && familyOf(address) === family ? address : null;
}
