// The chains of ipvs mode: rules that match whole sets, so that they hardly ever change.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { Family } from "../../model/address.ts";
import type { Protocol } from "../../model/snapshot.ts";
import type { Chain, Foundation, Match, PlacedRule, Rule, TableName } from "../../plan/iptables/types.ts";
import {
  accept,
  comment,
  drop,
  from,
  jump,
  marked,
  podTraffic,
  reject,
  returnToCaller,
  rule,
  toThisNode,
  tracked,
  unmarked,
} from "../iptables/rule.ts";
import { type Role, setComment, setName } from "./sets.ts";

export const outFilter = "KUBE-IPVS-OUT-FILTER";
const services = "KUBE-SERVICES";
const postrouting = "KUBE-POSTROUTING";
const nodePort = "KUBE-NODE-PORT";
const loadBalancer = "KUBE-LOAD-BALANCER";
const markMasquerade = "KUBE-MARK-MASQ";
const forward = "KUBE-FORWARD";
const firewall = "KUBE-PROXY-FIREWALL";
const sourceRanges = "KUBE-SOURCE-RANGES-FIREWALL";
const filter = "KUBE-IPVS-FILTER";

/** Every chain that is ours. */
export const ownChains: Readonly<Record<TableName, readonly string[]>> = {
  nat: [services, postrouting, nodePort, loadBalancer, markMasquerade],
  filter: [forward, nodePort, firewall, sourceRanges, filter, outFilter],
  mangle: [],
};

/** A missing jump is put on top, so the last of these ends up first. */
export const jumps: readonly PlacedRule[] = [
  fromBuiltIn("nat", "OUTPUT", services, "kubernetes service portals"),
  fromBuiltIn("nat", "PREROUTING", services, "kubernetes service portals"),
  fromBuiltIn("nat", "POSTROUTING", postrouting, "kubernetes postrouting rules"),
  fromBuiltIn("filter", "FORWARD", forward, "kubernetes forwarding rules"),
  fromBuiltIn("filter", "INPUT", nodePort, "kubernetes health check rules"),
  fromBuiltIn("filter", "INPUT", firewall, "kube-proxy firewall rules"),
  fromBuiltIn("filter", "FORWARD", firewall, "kube-proxy firewall rules"),
  fromBuiltIn("filter", "INPUT", filter, "kubernetes ipvs access filter"),
  fromBuiltIn("filter", "OUTPUT", outFilter, "kubernetes ipvs access filter"),
];

function fromBuiltIn(table: TableName, builtIn: string, chain: string, text: string): PlacedRule {
  return { table, chain: builtIn, rule: rule(comment(text), jump(chain)) };
}

/** Which sets hold anything: most rules about an empty one are left out. */
export type InUse = ReadonlySet<Role>;

export function foundationOf(settings: FamilySettings, inUse: InUse): Foundation {
  const sets = setMatches(settings.family);
  const ifUsed = (role: Role, ...rules: readonly Rule[]) => (inUse.has(role) ? rules : []);
  return {
    jumps,
    present: [],
    fixed: [
      chain("nat", services, [
        rule(from(loopback[settings.family]), returnToCaller),
        ...ifUsed("loadBalancer", rule(...sets.noted("loadBalancer", "dst,dst"), jump(loadBalancer))),
        ...ifUsed("clusterIP", rule(...clusterIPMasquerade(settings), jump(markMasquerade))),
        ...ifUsed(
          "externalIP",
          rule(...sets.noted("externalIP", "dst,dst"), jump(markMasquerade)),
          ...externalAccess(sets.noted("externalIP", "dst,dst")),
        ),
        ...ifUsed("externalIPLocal", ...externalAccess(sets.noted("externalIPLocal", "dst,dst"))),
        rule(toThisNode, jump(nodePort)),
        ...ifUsed("clusterIP", rule(sets.plain("clusterIP", "dst,dst"), accept)),
        ...ifUsed("loadBalancer", rule(sets.plain("loadBalancer", "dst,dst"), accept)),
      ]),
      chain("nat", loadBalancer, [
        ...ifUsed("loadBalancerLocal", rule(...sets.noted("loadBalancerLocal", "dst,dst"), returnToCaller)),
        rule(jump(markMasquerade)),
      ]),
      chain("nat", nodePort, [
        ...ofNodePorts("tcp", "nodePortLocalTcp", "nodePortTcp", "dst"),
        ...ofNodePorts("udp", "nodePortLocalUdp", "nodePortUdp", "dst"),
        ...ofNodePorts("sctp", "nodePortLocalSctp", "nodePortSctp", "dst,dst"),
      ]),
      chain("nat", postrouting, [
        ...ifUsed(
          "loopBack",
          rule(...sets.noted("loopBack", "dst,dst,src"), { kind: "masquerade", randomPorts: false }),
        ),
        ...masquerading(settings),
      ]),
      chain("nat", markMasquerade, [rule({ kind: "setMark", mark: settings.masqueradeMark })]),
      chain("filter", firewall, [
        ...ifUsed("firewall", rule(...sets.noted("firewall", "dst,dst"), jump(sourceRanges))),
      ]),
      chain("filter", sourceRanges, [
        ...ifUsed("sourceCidr", rule(...sets.noted("sourceCidr", "dst,dst,src"), returnToCaller)),
        ...ifUsed("sourceIP", rule(...sets.noted("sourceIP", "dst,dst,src"), returnToCaller)),
        rule(drop),
      ]),
      chain("filter", forward, [
        rule(comment("kubernetes forwarding rules"), marked(settings.masqueradeMark), accept),
        rule(comment("kubernetes forwarding conntrack rule"), tracked("RELATED,ESTABLISHED"), accept),
      ]),
      chain("filter", nodePort, [rule(...sets.noted("healthCheck", "dst"), accept)]),
      chain("filter", filter, [
        ...(["loadBalancer", "clusterIP", "externalIP", "externalIPLocal"] as const).map((role) =>
          rule(sets.plain(role, "dst,dst"), returnToCaller),
        ),
        rule(sets.plain("healthCheck", "dst"), returnToCaller),
        rule(tracked("NEW"), sets.plain("ipvsIPs", "dst"), reject),
      ]),
    ],
    shared: [chain("filter", outFilter, [])],
  };

  function ofNodePorts(protocol: Protocol, local: Role, all: Role, sides: string): Rule[] {
    const bare: Match = { kind: "bareProtocol", protocol };
    return [
      ...ifUsed(local, rule(bare, ...sets.noted(local, sides), returnToCaller)),
      ...ifUsed(all, rule(bare, ...sets.noted(all, sides), jump(markMasquerade))),
    ];
  }
}

function chain(table: TableName, name: string, rules: readonly Rule[]): Chain {
  return { table, name, rules };
}

const loopback = { ipv4: "127.0.0.0/8", ipv6: "::1/128" } as const satisfies Record<Family, string>;

/** Conditions on a set, with or without its comment. */
function setMatches(family: Family) {
  const plain = (role: Role, sides: string): Match => ({ kind: "set", name: setName(role, family), sides });
  const noted = (role: Role, sides: string): Match[] => [comment(setComment(role)), plain(role, sides)];
  return { plain, noted };
}

/** Without a detector only processes of the node are distinguished: their packets leave from the address they go to. */
function clusterIPMasquerade({ family, masqueradeAll, detector }: FamilySettings): Match[] {
  const { noted } = setMatches(family);
  if (masqueradeAll) return noted("clusterIP", "dst,dst");
  const others = podTraffic(detector, true);
  return others === null ? noted("clusterIP", "src,dst") : [...noted("clusterIP", "dst,dst"), others];
}

/** Traffic that a router would send on without us; what comes through a bridge came from a pod. */
function externalAccess(set: readonly Match[]): Rule[] {
  const fromElsewhere: Match = { kind: "localAddress", side: "src", not: true };
  return [rule(...set, { kind: "notBridged" }, fromElsewhere, accept), rule(...set, toThisNode, accept)];
}

/** The mark goes before the packet may enter the stack again, or it would be masqueraded twice. */
function masquerading({ masqueradeMark }: FamilySettings): Rule[] {
  return [
    rule(unmarked(masqueradeMark), returnToCaller),
    rule({ kind: "flipMark", mark: masqueradeMark }),
    rule(comment("kubernetes service traffic requiring SNAT"), { kind: "masquerade", randomPorts: true }),
  ];
}
