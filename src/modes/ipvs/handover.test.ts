// From iptables mode to ipvs mode and back: chains of the same names are taken over, and no deletion is refused.
import { describe, expect, it } from "vitest";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../test/support/routed.ts";
import { applyInMemory, freshTables } from "../../host/iptables/memory.ts";
import { adopt } from "../../plan/iptables/adopt.ts";
import type { HostTables, TableName } from "../../plan/iptables/types.ts";
import { compile as compileIptables } from "../iptables/compile.ts";
import { removal } from "../iptables/removal.ts";
import { compile as compileIpvs } from "./compile.ts";
import { jumps, ownChains } from "./foundation.ts";

/** As the programs list them: a chain may come before the one that jumps to it. */
function listedByName({ family, tables }: HostTables): HostTables {
  const sorted = [...tables].map(
    ([table, chains]) => [table, new Map([...chains].sort(([a], [b]) => (a < b ? -1 : 1)))] as const,
  );
  return { family, tables: new Map(sorted) };
}

describe("between iptables and ipvs mode", () => {
  const web = servicePort("shop/web", {
    nodePort: 30080,
    externalIPs: ["192.168.99.5"],
    endpoints: [endpoint("10.180.0.1:80"), endpoint("10.180.1.1:80")],
  });
  const routes = routed([web], ipv4Settings);
  const iptables = compileIptables(null, routes, { invalidDropped: false, localhostNodePorts: false });
  const ipvs = compileIpvs(null, routes, { scheduler: "", excludeCIDRs: [] }).tables;
  const fresh = freshTables("ipv4");

  it("what only iptables mode needs is removed after a switch to ipvs mode, which keeps all of its own", () => {
    const before = listedByName(applyInMemory(fresh, adopt(fresh, iptables)));
    const both = listedByName(applyInMemory(before, adopt(before, ipvs)));
    const host = applyInMemory(both, removal(both, { jumps, chains: ownChains }));
    expect(adopt(host, ipvs).steps).toEqual([]);
    const chains = (table: TableName) =>
      [...host.tables.get(table)!.keys()].filter((name) => name.startsWith("KUBE-"));
    expect(chains("nat").sort()).toEqual([...ownChains.nat, "KUBE-PROXY-CANARY"].sort());
    expect(chains("filter").sort()).toEqual(
      [...ownChains.filter, "KUBE-FIREWALL", "KUBE-PROXY-CANARY"].sort(),
    );
    const input = host.tables
      .get("filter")!
      .get("INPUT")!
      .map((line) => line.slice(line.indexOf("-j ") + 3));
    expect(input).toEqual(["KUBE-IPVS-FILTER", "KUBE-PROXY-FIREWALL", "KUBE-NODE-PORT", "KUBE-FIREWALL"]);
  });

  it("each finds its rules in place after the other, with what the other left", () => {
    let host = listedByName(applyInMemory(fresh, adopt(fresh, iptables)));
    for (const want of [ipvs, iptables, ipvs]) {
      host = listedByName(applyInMemory(host, adopt(host, want)));
      expect(adopt(host, want).steps).toEqual([]);
    }
    // An old NodePort still leads to chains of its Service, so those stay, as they do after kube-proxy.
    const nat = [...host.tables.get("nat")!.keys()];
    expect(nat.some((name) => name.startsWith("KUBE-EXT-"))).toBe(true);
    expect(
      host.tables
        .get("nat")!
        .get("KUBE-SERVICES")!
        .some((line) => line.includes("KUBE-SVC")),
    ).toBe(false);
  });
});
