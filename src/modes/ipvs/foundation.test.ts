// The rules of ipvs mode, held against those of kube-proxy v1.37.
import { describe, expect, it } from "vitest";
import { every, planOf, sixth } from "../../../test/support/ipvs-plans.ts";
import { ipv4Settings, ipv6Settings } from "../../../test/support/routed.ts";
import type { FamilySettings } from "../../config/resolve/settings.ts";
import { applyInMemory, freshTables } from "../../host/iptables/memory.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import { adopt } from "../../plan/iptables/adopt.ts";
import { chainsOf } from "../../plan/iptables/plan.ts";
import { ruleInput } from "../../plan/iptables/text.ts";
import type { HostTables } from "../../plan/iptables/types.ts";
import { setComment } from "./sets.ts";

/** The rules of kube-proxy's restore for the fixture, chain by chain, as its reference has them. */
function expected(family: "ipv4" | "ipv6", clusterIP: string): Record<string, string[]> {
  const name = (short: string) => (family === "ipv4" ? `KUBE-${short}` : `KUBE-6-${short}`.slice(0, 31));
  const set = (short: string, sides: string) => `-m set --match-set ${name(short)} ${sides}`;
  const note = (role: Parameters<typeof setComment>[0]) => `-m comment --comment "${setComment(role)}"`;
  const mark = "0x00004000";
  return {
    "nat KUBE-SERVICES": [
      `-s ${family === "ipv4" ? "127.0.0.0/8" : "::1/128"} -j RETURN`,
      `${note("loadBalancer")} ${set("LOAD-BALANCER", "dst,dst")} -j KUBE-LOAD-BALANCER`,
      `${note("clusterIP")} ${set("CLUSTER-IP", clusterIP)} -j KUBE-MARK-MASQ`,
      `${note("externalIP")} ${set("EXTERNAL-IP", "dst,dst")} -j KUBE-MARK-MASQ`,
      `${note("externalIP")} ${set("EXTERNAL-IP", "dst,dst")} -m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL -j ACCEPT`,
      `${note("externalIP")} ${set("EXTERNAL-IP", "dst,dst")} -m addrtype --dst-type LOCAL -j ACCEPT`,
      `${note("externalIPLocal")} ${set("EXTERNAL-IP-LOCAL", "dst,dst")} -m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL -j ACCEPT`,
      `${note("externalIPLocal")} ${set("EXTERNAL-IP-LOCAL", "dst,dst")} -m addrtype --dst-type LOCAL -j ACCEPT`,
      "-m addrtype --dst-type LOCAL -j KUBE-NODE-PORT",
      `${set("CLUSTER-IP", "dst,dst")} -j ACCEPT`,
      `${set("LOAD-BALANCER", "dst,dst")} -j ACCEPT`,
    ],
    "nat KUBE-LOAD-BALANCER": [
      `${note("loadBalancerLocal")} ${set("LOAD-BALANCER-LOCAL", "dst,dst")} -j RETURN`,
      "-j KUBE-MARK-MASQ",
    ],
    "nat KUBE-NODE-PORT": [
      `-p tcp ${note("nodePortLocalTcp")} ${set("NODE-PORT-LOCAL-TCP", "dst")} -j RETURN`,
      `-p tcp ${note("nodePortTcp")} ${set("NODE-PORT-TCP", "dst")} -j KUBE-MARK-MASQ`,
      `-p udp ${note("nodePortLocalUdp")} ${set("NODE-PORT-LOCAL-UDP", "dst")} -j RETURN`,
      `-p udp ${note("nodePortUdp")} ${set("NODE-PORT-UDP", "dst")} -j KUBE-MARK-MASQ`,
      `-p sctp ${note("nodePortLocalSctp")} ${set("NODE-PORT-LOCAL-SCTP-HASH", "dst,dst")} -j RETURN`,
      `-p sctp ${note("nodePortSctp")} ${set("NODE-PORT-SCTP-HASH", "dst,dst")} -j KUBE-MARK-MASQ`,
    ],
    "nat KUBE-POSTROUTING": [
      `${note("loopBack")} ${set("LOOP-BACK", "dst,dst,src")} -j MASQUERADE`,
      `-m mark ! --mark ${mark}/${mark} -j RETURN`,
      `-j MARK --xor-mark ${mark}`,
      '-m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
    ],
    "nat KUBE-MARK-MASQ": [`-j MARK --or-mark ${mark}`],
    "filter KUBE-PROXY-FIREWALL": [
      `${note("firewall")} ${set("LOAD-BALANCER-FW", "dst,dst")} -j KUBE-SOURCE-RANGES-FIREWALL`,
    ],
    "filter KUBE-SOURCE-RANGES-FIREWALL": [
      `${note("sourceCidr")} ${set("LOAD-BALANCER-SOURCE-CIDR", "dst,dst,src")} -j RETURN`,
      ...(family === "ipv4"
        ? [`${note("sourceIP")} ${set("LOAD-BALANCER-SOURCE-IP", "dst,dst,src")} -j RETURN`]
        : []),
      "-j DROP",
    ],
    "filter KUBE-FORWARD": [
      `-m comment --comment "kubernetes forwarding rules" -m mark --mark ${mark}/${mark} -j ACCEPT`,
      '-m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
    ],
    "filter KUBE-NODE-PORT": [`${note("healthCheck")} ${set("HEALTH-CHECK-NODE-PORT", "dst")} -j ACCEPT`],
    "filter KUBE-IPVS-FILTER": [
      `${set("LOAD-BALANCER", "dst,dst")} -j RETURN`,
      `${set("CLUSTER-IP", "dst,dst")} -j RETURN`,
      `${set("EXTERNAL-IP", "dst,dst")} -j RETURN`,
      `${set("EXTERNAL-IP-LOCAL", "dst,dst")} -j RETURN`,
      `${set("HEALTH-CHECK-NODE-PORT", "dst")} -j RETURN`,
      `-m conntrack --ctstate NEW ${set("IPVS-IPS", "dst")} -j REJECT`,
    ],
    "filter KUBE-IPVS-OUT-FILTER":
      family === "ipv4"
        ? ["-s 198.51.100.7 -m ipvs --vaddr 198.51.100.7 --vproto tcp --vport 80 -j DROP"]
        : ["fd00:198:51:100::7", "fd00:198:51:100::8"]
            .sort()
            .map((vip) => `-s ${vip} -m ipvs --vaddr ${vip} --vproto tcp --vport 80 -j DROP`),
  };
}

function rulesOf(ports: readonly ServicePort[], settings: FamilySettings): Record<string, string[]> {
  const { tables } = planOf(ports, settings);
  const chains = (["nat", "filter"] as const).flatMap((table) => chainsOf(tables, table));
  return Object.fromEntries(
    chains.map(({ table, name, rules }) => [`${table} ${name}`, rules.map(ruleInput)]),
  );
}

describe("rules", () => {
  const forms: [string, Partial<FamilySettings>, string][] = [
    ["a pod network", {}, "dst,dst ! -s 10.0.0.0/8"],
    ["an interface", { detector: { kind: "interface", name: "cni0" } }, "dst,dst ! -i cni0"],
    [
      "a prefix of interfaces",
      { detector: { kind: "interfacePrefix", prefix: "veth" } },
      "dst,dst ! -i veth+",
    ],
    ["nothing", { detector: { kind: "none" } }, "src,dst"],
    ["nothing, masqueradeAll", { detector: { kind: "none" }, masqueradeAll: true }, "dst,dst"],
    ["a pod network, masqueradeAll", { masqueradeAll: true }, "dst,dst"],
  ];
  it.each(forms)("20/30 are kube-proxy's, line by line, where pods are known by %s", (_, more, clusterIP) => {
    expect(rulesOf(every, { ...ipv4Settings, ...more })).toEqual(expected("ipv4", clusterIP));
  });

  it("20/30 are kube-proxy's in IPv6", () => {
    expect(rulesOf(every.map(sixth), ipv6Settings)).toEqual(expected("ipv6", "dst,dst ! -s fd00::/8"));
  });

  it("20/31 about an empty set are left out, except those that are always written", () => {
    const all = expected("ipv4", "");
    const filter = all["filter KUBE-IPVS-FILTER"]!;
    expect(rulesOf([], ipv4Settings)).toEqual({
      "nat KUBE-SERVICES": ["-s 127.0.0.0/8 -j RETURN", "-m addrtype --dst-type LOCAL -j KUBE-NODE-PORT"],
      "nat KUBE-LOAD-BALANCER": ["-j KUBE-MARK-MASQ"],
      "nat KUBE-NODE-PORT": [],
      "nat KUBE-POSTROUTING": all["nat KUBE-POSTROUTING"]!.slice(1),
      "nat KUBE-MARK-MASQ": all["nat KUBE-MARK-MASQ"],
      "filter KUBE-PROXY-FIREWALL": [],
      "filter KUBE-SOURCE-RANGES-FIREWALL": ["-j DROP"],
      "filter KUBE-FORWARD": all["filter KUBE-FORWARD"],
      "filter KUBE-NODE-PORT": all["filter KUBE-NODE-PORT"],
      "filter KUBE-IPVS-FILTER": filter,
      "filter KUBE-IPVS-OUT-FILTER": [],
    });
  });

  it("20/32 are led to in that order on a host, above the rules of others, once however often it is checked", () => {
    const { tables: plan } = planOf(every);
    const fresh = freshTables("ipv4");
    const filter = new Map(fresh.tables.get("filter")).set("INPUT", ["-j OTHERS"]).set("OTHERS", []);
    let host: HostTables = { ...fresh, tables: new Map(fresh.tables).set("filter", filter) };
    for (const _ of [1, 2]) {
      host = applyInMemory(host, adopt(host, plan));
      const led = (["filter", "nat"] as const).flatMap((table) =>
        [...host.tables.get(table)!]
          .filter(([name]) => !name.startsWith("KUBE-"))
          .flatMap(([name, rules]) => rules.map((line) => `${table} ${name} ${/-j (\S+)$/.exec(line)![1]}`)),
      );
      expect(led.sort()).toEqual([
        "filter FORWARD KUBE-FORWARD",
        "filter FORWARD KUBE-PROXY-FIREWALL",
        "filter INPUT KUBE-IPVS-FILTER",
        "filter INPUT KUBE-NODE-PORT",
        "filter INPUT KUBE-PROXY-FIREWALL",
        "filter INPUT OTHERS",
        "filter OUTPUT KUBE-IPVS-OUT-FILTER",
        "nat OUTPUT KUBE-SERVICES",
        "nat POSTROUTING KUBE-POSTROUTING",
        "nat PREROUTING KUBE-SERVICES",
      ]);
      const targets = (chain: string) =>
        host.tables
          .get("filter")!
          .get(chain)!
          .map((line) => /-j (\S+)$/.exec(line)![1]);
      expect(targets("INPUT")).toEqual([
        "KUBE-IPVS-FILTER",
        "KUBE-PROXY-FIREWALL",
        "KUBE-NODE-PORT",
        "OTHERS",
      ]);
      expect(targets("FORWARD")).toEqual(["KUBE-PROXY-FIREWALL", "KUBE-FORWARD"]);
    }
  });

  it("20/32 are led to in kube-proxy's order", () => {
    const { jumps } = planOf([]).tables.foundation;
    const order = (table: string, chain: string) =>
      jumps
        .filter((jump) => jump.table === table && jump.chain === chain)
        .map(({ rule }) => (rule.target.kind === "jump" ? rule.target.chain : ""))
        .reverse();
    expect(order("filter", "INPUT")).toEqual(["KUBE-IPVS-FILTER", "KUBE-PROXY-FIREWALL", "KUBE-NODE-PORT"]);
    expect(order("filter", "FORWARD")).toEqual(["KUBE-PROXY-FIREWALL", "KUBE-FORWARD"]);
    expect(order("filter", "OUTPUT")).toEqual(["KUBE-IPVS-OUT-FILTER"]);
    expect(order("nat", "OUTPUT")).toEqual(["KUBE-SERVICES"]);
    expect(order("nat", "PREROUTING")).toEqual(["KUBE-SERVICES"]);
    expect(order("nat", "POSTROUTING")).toEqual(["KUBE-POSTROUTING"]);
    expect(ruleInput(jumps[7]!.rule)).toBe(
      '-m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER',
    );
  });
});
