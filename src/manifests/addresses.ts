// Lists of addresses and networks from manifests: parsed, without duplicates, split by family in their order.
import { type Address, type Cidr, type Family, familyOf, parseAddress, parseCidr } from "../model/address.ts";
import { quoted } from "../model/problem.ts";
import { addProblem, type Report } from "./read.ts";

export type ByFamily<T> = Readonly<Record<Family, T>>;

/** Not trimmed: blanks around an address make it invalid. Blank items are dropped silently. */
export function addressesOf(
  report: Report,
  items: readonly string[],
  field: string,
): ByFamily<readonly Address[]> {
  return split(items, (item, i) => {
    const address = parseAddress(item);
    if (address === null && item.trim() !== "") {
      addProblem(report, "invalid-address", `${field}[${i}]`, `is ${quoted(item)}, not an IP address`);
    }
    return address;
  });
}

/** Each item is trimmed, then parsed and masked. Blank items are dropped silently. */
export function cidrsOf(report: Report, items: readonly string[], field: string): ByFamily<readonly Cidr[]> {
  return split(items, (item, i) => cidrOf(report, item, `${field}[${i}]`));
}

export function cidrOf(report: Report, item: string, field: string): Cidr | null {
  const cidr = parseCidr(item.trim());
  if (cidr === null && item.trim() !== "") {
    addProblem(report, "invalid-range", field, `is ${quoted(item)}, not a network such as 10.0.0.0/8`);
  }
  return cidr;
}

/** One empty list for all: most Services have no external addresses. */
const none: readonly string[] = [];
export const emptyByFamily: ByFamily<readonly string[]> = { ipv4: none, ipv6: none };

function split(
  items: readonly string[],
  parse: (item: string, index: number) => string | null,
): ByFamily<readonly string[]> {
  if (items.length === 0) return emptyByFamily;
  const found = [...new Set(items.map(parse))].filter((item) => item !== null);
  const of = (family: Family) => {
    const own = found.filter((item) => familyOf(item) === family);
    return own.length === 0 ? none : own;
  };
  return { ipv4: of("ipv4"), ipv6: of("ipv6") };
}
