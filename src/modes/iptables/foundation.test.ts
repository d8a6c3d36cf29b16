// The rules that iptables mode has whatever Services there are, and the way to NodePorts.
import { describe, expect, it } from "vitest";
import {
  constantFilterRules,
  counters,
  external,
  front,
  noCounters,
  rules,
} from "../../../test/support/iptables-rules.ts";
import { ipv4Settings, ipv6Settings, routed } from "../../../test/support/routed.ts";
import type { FamilySettings } from "../../config/resolve/settings.ts";
import { print } from "../../plan/iptables/print.ts";
import { compile } from "./compile.ts";

describe("without Services", () => {
  it("10/11 10/13 holds the constant rules and the way to NodePorts", () => {
    expect(rules("nat", "KUBE-", [])).toEqual([
      "-A KUBE-MARK-MASQ -j MARK --or-mark 0x00004000",
      "-A KUBE-POSTROUTING -m mark ! --mark 0x00004000/0x00004000 -j RETURN",
      "-A KUBE-POSTROUTING -j MARK --xor-mark 0x00004000",
      '-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
      `-A KUBE-SERVICES ${last} -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS`,
    ]);
    expect(rules("filter", "KUBE-", [])).toEqual(constantFilterRules);
  });

  it("10/12 10/13 has no rule for 127.0.0.0/8 in IPv6, but the chain", () => {
    const plan = compile(null, routed([], ipv6Settings), counters);
    expect(print(plan)).toContain(":KUBE-FIREWALL - [0:0]\n");
    expect(print(plan)).not.toContain("-A KUBE-FIREWALL");
    expect(rules("nat", "KUBE-SERVICES", [], ipv6Settings)).toEqual([
      `-A KUBE-SERVICES ${last} -m addrtype --dst-type LOCAL ! -d ::1/128 -j KUBE-NODEPORTS`,
    ]);
  });

  it("10/13 keeps NodePorts off loopback when configured so", () => {
    expect(rules("nat", "KUBE-SERVICES", [], { ...ipv4Settings, localhostNodePorts: false })).toEqual([
      `-A KUBE-SERVICES ${last} -m addrtype --dst-type LOCAL ! -d 127.0.0.0/8 -j KUBE-NODEPORTS`,
    ]);
  });

  it("10/5 prints the jumps as they are on a fresh host", () => {
    const built = print(compile(null, routed([]), counters))
      .split("\n")
      .filter((line) => /^-A (INPUT|FORWARD|OUTPUT) /.test(line) && !line.includes("-j KUBE-POSTROUTING"));
    expect(built.slice(0, 11)).toEqual(jumpsInFilter);
  });

  it("10/14 10/15 leads from single addresses when NodePorts are restricted", () => {
    const some = (cidrs: readonly string[], localhostNodePorts: boolean): FamilySettings => ({
      ...ipv4Settings,
      localAddresses: ["10.180.0.254", "127.0.0.1", "192.168.0.2", "192.168.0.9"],
      nodePortAddresses: { kind: "some", cidrs },
      localhostNodePorts,
    });
    const to = (address: string) => `-A KUBE-SERVICES ${last} -d ${address} -j KUBE-NODEPORTS`;
    expect(rules("nat", "KUBE-SERVICES", [], some(["192.168.0.0/24"], false))).toEqual([
      to("192.168.0.2"),
      to("192.168.0.9"),
    ]);
    expect(rules("nat", "KUBE-SERVICES", [], some(["127.0.0.1/32"], true))).toEqual([to("127.0.0.1")]);
    expect(rules("nat", "KUBE-SERVICES", [], some(["127.0.0.1/32"], false))).toEqual([]);
  });

  it("10/17 drops INVALID packets unless conntrack is liberal", () => {
    expect(rules("filter", "KUBE-FORWARD", [])[0]).toContain("--ctstate INVALID");
    expect(rules("filter", "KUBE-FORWARD", [], { ...ipv4Settings, tcpBeLiberal: true })).toHaveLength(2);
  });

  it("10/18 names no counter that the host does not have", () => {
    const all = [
      ...rules("filter", "", [front], ipv4Settings, noCounters),
      ...rules("nat", "", [front], ipv4Settings, noCounters),
    ];
    expect(all.filter((line) => line.includes("nfacct") || line.includes("127.0.0.0/8 --dport"))).toEqual([]);
    expect(all).toContain("-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP");
  });
});

describe("NodePorts", () => {
  it("10/19 are counted on loopback only where they answer there", () => {
    const counted = (settings: FamilySettings) =>
      rules("nat", "KUBE-NODEPORTS", [external()], settings).filter((line) => line.includes("nfacct"));
    expect(counted(ipv4Settings)).toEqual([
      "-A KUBE-NODEPORTS -m comment --comment shop/x -m tcp -p tcp -d 127.0.0.0/8 --dport 30080 -m nfacct --nfacct-name localhost_nps_accepted_pkts -j KUBE-EXT",
    ]);
    expect(counted({ ...ipv4Settings, localhostNodePorts: false })).toEqual([]);
    expect(counted(ipv6Settings)).toEqual([]);
  });

  it("10/29 without endpoints are rejected on every local address", () => {
    expect(rules("filter", "KUBE-EXTERNAL", [external({ endpoints: [] })])).toEqual([
      '-A KUBE-EXTERNAL-SERVICES -m comment --comment "shop/x has no endpoints" -m addrtype --dst-type LOCAL -m tcp -p tcp --dport 30080 -j REJECT',
    ]);
    expect(rules("nat", "KUBE-E", [external({ endpoints: [] })])).toEqual([]);
  });
});

const last =
  '-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain"';

const jumpsInFilter = `-A INPUT -j KUBE-FIREWALL
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A INPUT -m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A OUTPUT -j KUBE-FIREWALL
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES`.split(
  "\n",
);
