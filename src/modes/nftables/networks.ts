// Networks as the kernel takes them: an interval set refuses what lies inside another element.
import { type Cidr, containsCidr, prefixLength } from "../../model/address.ts";

/** The networks without those that lie inside another one, sorted. */
export function withoutNested(networks: readonly Cidr[]): readonly Cidr[] {
  const kept: Cidr[] = [];
  for (const network of [...new Set(networks)].sort((a, b) => prefixLength(a) - prefixLength(b))) {
    if (!kept.some((outer) => containsCidr(outer, network))) kept.push(network);
  }
  return kept.sort();
}
