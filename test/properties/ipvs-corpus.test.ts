// Line for line what the real kube-proxy left in a kernel with IPVS on recorded cluster states, both families.
import { describe, expect, it } from "vitest";
import { contains, type Family, families, familyOf } from "../../src/model/address.ts";
import { compile, optionsOf } from "../../src/modes/ipvs/compile.ts";
import { print } from "../../src/plan/ipvs/print.ts";
import type { IpvsPlan } from "../../src/plan/ipvs/types.ts";
import { route } from "../../src/routing/routes.ts";
import { readIpvsCorpus } from "../reference/corpus.ts";
import { differences } from "../reference/differences.ts";
import { settingsFor } from "../reference/family-settings.ts";
import { foreignServers, furtherNodeAddresses, type IpvsCase } from "../reference/ipvs-cases.ts";
import { deviations, unexplained } from "../reference/ipvs-deviations.ts";
import type { Rules } from "../reference/record.ts";
import { snapshotOf } from "../scenario-routes.ts";

const addressListing = "ip -o address show dev kube-ipvs0 scope global";

const found = readIpvsCorpus().map(({ rules, ...state }) => {
  const plans = families.map((family) => planOf(state, family));
  return { state, differences: differences(comparable(rules), printed(plans, state)) };
});

describe("recorded states of ipvs mode", () => {
  it.each(found)("20/27 20/30 our Plan prints kube-proxy's lines: seed $state.seed", (each) => {
    expect(unexplained(each.differences, each.state)).toEqual([]);
  });

  it.each(deviations)("deviate: $reason", ({ covers }) => {
    expect(found.some(({ state, differences: all }) => all.some((each) => covers(each, state)))).toBe(true);
  });
});

function planOf({ configuration, objects }: IpvsCase, family: Family): IpvsPlan {
  const further = furtherNodeAddresses.filter((address) => familyOf(address) === family);
  const settings = settingsFor(configuration, objects, family, further);
  const options = optionsOf(configuration as unknown as Parameters<typeof optionsOf>[0]);
  return compile(null, route(null, snapshotOf(objects)[family], settings), options);
}

/** What a Plan contains: no sysctls and time-outs, no built-in chains. */
function comparable(rules: Rules): Rules {
  const addresses = rules[addressListing]!.matchAll(/ inet6? (\S+)/g);
  return {
    "ipvsadm -Sn": rules["ipvsadm -Sn"]!,
    "ipset save": rules["ipset save"]!,
    [addressListing]: [...addresses].map(([, cidr]) => `address add ${cidr} dev kube-ipvs0`).join("\n"),
    "iptables-save": ownTables(rules["iptables-save"]!),
    "ip6tables-save": ownTables(rules["ip6tables-save"]!),
  };
}

/** A table in which nothing is wanted is not made. */
function withoutEmpty(text: string): string {
  return text.replace(/^\*[a-z]+\nCOMMIT\n/gm, "");
}

function ownTables(text: string): string {
  return text.replace(/^:[A-Z]+ ACCEPT.*\n/gm, "");
}

/** Both families in one listing, as the tools do it, and the foreign servers that are excluded or have no address. */
function printed(plans: readonly IpvsPlan[], { configuration }: IpvsCase): Rules {
  const { excludeCIDRs } = optionsOf(configuration as unknown as Parameters<typeof optionsOf>[0]);
  const sections = plans.map((plan) =>
    print(plan)
      .split(/^# .*\n/m)
      .slice(1),
  );
  const [servers, addresses, sets] = [0, 1, 2].map((i) => sections.map((parts) => parts[i]!).join(""));
  const foreign = foreignServers.filter((line) => {
    const address = / -[tu] \[?([^\]]+?)\]?:\d+ /.exec(line)?.[1];
    return address === undefined || excludeCIDRs.some((cidr) => contains(cidr, address));
  });
  return {
    "ipvsadm -Sn": `${servers}${foreign.join("\n")}`,
    "ipset save": sets!,
    [addressListing]: addresses!,
    "iptables-save": withoutEmpty(sections[0]![3]!),
    "ip6tables-save": withoutEmpty(sections[1]![3]!),
  };
}
