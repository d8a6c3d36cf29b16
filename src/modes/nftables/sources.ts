// Source ranges of load-balancer addresses: a set and a chain for each list of ranges, shared by all that have this list.
import { createHash } from "node:crypto";
import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { Cidr } from "../../model/address.ts";
import { withoutNested } from "../../model/networks.ts";
import { networkKey } from "../../plan/nftables/key.ts";
import type { Chain, Element, FilledSet, NftSet, Verdict } from "../../plan/nftables/types.ts";
import { goto } from "../../plan/nftables/verdict.ts";
import type { Routes } from "../../routing/routes.ts";
import { byAddress, rule } from "./foundation.ts";
import { countedSet } from "./names.ts";

/** Lets these sources pass and drops all others; the verdict leads there. */
export type SourceCheck = { readonly verdict: Verdict; readonly chain: Chain; readonly ranges: FilledSet };

/**
 * The name follows from the ranges, so equal names mean equal ranges, and a changed list is a new set that is complete
 * before an address leads to it. Computed once for each list: all ports and addresses of a Service share one.
 */
export function sourceCheck(allowed: readonly Cidr[], { traffic }: Counting): SourceCheck {
  const known = traffic === "off" ? plain : counting;
  let check = known.get(allowed);
  if (check === undefined) {
    check = make(allowed, { traffic });
    known.set(allowed, check);
  }
  return check;
}

type Counting = Pick<FamilySettings, "traffic">;

const plain = new WeakMap<readonly Cidr[], SourceCheck>();
const counting = new WeakMap<readonly Cidr[], SourceCheck>();

/** Lists of more than `most` sources among the Routes that changed, each once. */
export function longSourceLists(
  { servicePorts, ports, changed }: Routes,
  most: number,
): Iterable<readonly Cidr[]> {
  const lists = new Set<readonly Cidr[]>();
  for (const key of changed) {
    const port = servicePorts.get(key);
    if (port === undefined || port.sourceRanges.length + port.loadBalancerIPs.length <= most) continue;
    const allowed = ports.get(key)?.routes.find((route) => route.allowed !== null)?.allowed ?? [];
    if (allowed.length > most) lists.add(allowed);
  }
  return lists;
}

/** Those among chains of these names, with their sets, whose elements are not known. */
export function sourceChecksAmong(
  names: readonly string[],
  settings: Counting,
): readonly { readonly chain: Chain; readonly set: NftSet }[] {
  return names.flatMap((name) => {
    const [, hash] = /^firewall\/([0-9a-f]{32})$/.exec(name) ?? [];
    return hash === undefined ? [] : { chain: chainOf(hash, settings), set: setOf(hash) };
  });
}

function make(allowed: readonly Cidr[], settings: Counting): SourceCheck {
  const keys = withoutNested(allowed).map(networkKey);
  // 128 bits: another tenant must not find ranges that give the same name.
  const hash = createHash("sha256").update(keys.join()).digest("hex").slice(0, 32);
  const elements = new Map(keys.map((key): [string, Element] => [key, { key, data: null, comment: null }]));
  const chain = chainOf(hash, settings);
  return { verdict: goto(chain.name), chain, ranges: { set: setOf(hash), elements } };
}

/** The slash makes kube-proxy remove the chain when it takes over. */
function chainOf(hash: string, { traffic }: Counting): Chain {
  const isAllowed = { kind: "in set", fields: ["saddr"], set: setOf(hash).name } as const;
  const counted = rule({ kind: "in set", fields: byAddress, set: countedSet.outOfRange });
  return {
    name: `firewall/${hash}`,
    hook: null,
    rules: [
      rule(isAllowed, { kind: "return" }),
      ...(traffic === "off" ? [] : [counted]),
      rule({ kind: "drop" }),
    ],
    comment: null,
  };
}

function setOf(hash: string): NftSet {
  return {
    name: `source-ranges-${hash}`,
    key: ["address"],
    data: null,
    interval: true,
    timeout: null,
    comment: "LoadBalancerSourceRanges",
  };
}
