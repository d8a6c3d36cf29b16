// What is in the tables independent of Services: jumps, masquerading, forwarding, the way to NodePorts.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import { type Address, contains, isLoopback } from "../../model/address.ts";
import { adopt } from "../../plan/iptables/adopt.ts";
import { emptyPlan } from "../../plan/iptables/plan.ts";
import type {
  Chain,
  Foundation,
  HostTables,
  IptablesPatch,
  Match,
  PlacedRule,
  Rule,
  TableName,
} from "../../plan/iptables/types.ts";
import {
  accept,
  comment,
  counted,
  drop,
  jump,
  marked,
  notFrom,
  notTo,
  notTracked,
  returnToCaller,
  rule,
  to,
  toThisNode,
  tracked,
  unmarked,
} from "./rule.ts";

/** nfacct objects that exist on the host; a rule can only name one that does. */
export type Counters = { readonly invalidDropped: boolean; readonly localhostNodePorts: boolean };

export const counterNames = {
  invalidDropped: "ct_state_invalid_dropped_pkts",
  localhostNodePorts: "localhost_nps_accepted_pkts",
} as const satisfies Record<keyof Counters, string>;

export const services = "KUBE-SERVICES";
export const externalServices = "KUBE-EXTERNAL-SERVICES";
export const nodePorts = "KUBE-NODEPORTS";
export const proxyFirewall = "KUBE-PROXY-FIREWALL";
export const markMasquerade = "KUBE-MARK-MASQ";
const forward = "KUBE-FORWARD";
const postrouting = "KUBE-POSTROUTING";
/** Shared with the kubelet: never deleted. */
export const kubeletFirewall = "KUBE-FIREWALL";
/** Empty, in every table: when it is gone, another process flushed the tables. */
export const canaryChain = "KUBE-PROXY-CANARY";

/** Chains that are ours alone, besides those of Services. */
export const ownChainNames: Readonly<Record<TableName, readonly string[]>> = {
  filter: [services, externalServices, forward, nodePorts, proxyFirewall],
  nat: [services, nodePorts, postrouting, markMasquerade],
  mangle: [],
};

export function foundationOf(settings: FamilySettings, counters: Counters): Foundation {
  const { localhostNodePorts } = settings;
  const canaries = (["mangle", "nat", "filter"] as const).map((table) => ({ table, name: canaryChain }));
  return {
    jumps,
    present: localhostNodePorts ? canaries : [...canaries, { table: "filter", name: kubeletFirewall }],
    fixed: [
      ...(localhostNodePorts ? [localnetGuard] : []),
      chain("filter", forward, forwarding(settings, counters)),
      chain("nat", postrouting, masquerading(settings)),
      chain("nat", markMasquerade, [rule({ kind: "setMark", mark: settings.masqueradeMark })]),
    ],
    guards: localhostNodePorts ? loopbackGuards : [],
    shared: [
      chain("filter", services, []),
      chain("filter", externalServices, []),
      chain("filter", nodePorts, []),
      chain("filter", proxyFirewall, []),
      chain("nat", services, wayToNodePorts(settings)),
      chain("nat", nodePorts, []),
    ],
  };
}

function chain(table: TableName, name: string, rules: readonly Rule[]): Chain {
  return { table, name, rules };
}

const newOnly = tracked("NEW");

/** A missing jump is put on top, so the last of these ends up first. */
export const jumps: readonly PlacedRule[] = [
  fromBuiltIn(
    "filter",
    "INPUT",
    externalServices,
    newOnly,
    comment("kubernetes externally-visible service portals"),
  ),
  fromBuiltIn(
    "filter",
    "FORWARD",
    externalServices,
    newOnly,
    comment("kubernetes externally-visible service portals"),
  ),
  fromBuiltIn("filter", "INPUT", nodePorts, comment("kubernetes health check service ports")),
  fromBuiltIn("filter", "FORWARD", services, newOnly, comment("kubernetes service portals")),
  fromBuiltIn("filter", "OUTPUT", services, newOnly, comment("kubernetes service portals")),
  fromBuiltIn("filter", "FORWARD", forward, comment("kubernetes forwarding rules")),
  fromBuiltIn("filter", "INPUT", proxyFirewall, newOnly, comment("kubernetes load balancer firewall")),
  fromBuiltIn("filter", "OUTPUT", proxyFirewall, newOnly, comment("kubernetes load balancer firewall")),
  fromBuiltIn("filter", "FORWARD", proxyFirewall, newOnly, comment("kubernetes load balancer firewall")),
  fromBuiltIn("nat", "OUTPUT", services, comment("kubernetes service portals")),
  fromBuiltIn("nat", "PREROUTING", services, comment("kubernetes service portals")),
  fromBuiltIn("nat", "POSTROUTING", postrouting, comment("kubernetes postrouting rules")),
  fromBuiltIn("filter", "INPUT", kubeletFirewall),
  fromBuiltIn("filter", "OUTPUT", kubeletFirewall),
];

function fromBuiltIn(table: TableName, builtIn: string, chain: string, ...match: Match[]): PlacedRule {
  return { table, chain: builtIn, rule: rule(...match, jump(chain)) };
}

/** `route_localnet` opens 127.0.0.0/8 to neighbours; this closes it again, except for what we redirected there. */
const localnetGuard: Chain = chain("filter", kubeletFirewall, [
  rule(
    comment("block incoming localnet connections"),
    to("127.0.0.0/8"),
    notFrom("127.0.0.0/8"),
    notTracked("RELATED,ESTABLISHED,DNAT"),
    drop,
  ),
]);

/** The rule against CVE-2020-8558 and the jump that leads to it. */
export const loopbackGuards: readonly PlacedRule[] = [
  fromBuiltIn("filter", "INPUT", kubeletFirewall),
  ...localnetGuard.rules.map(
    (guard): PlacedRule => ({
      table: "filter",
      chain: kubeletFirewall,
      rule: guard,
    }),
  ),
];

/**
 * Puts the guard in place, and the other jumps of its table to chains that are empty if new: later they would be
 * inserted above the guard, where kube-proxy has them below.
 */
export function loopbackGuarding(have: HostTables): IptablesPatch {
  const foundation: Foundation = {
    jumps: jumps.filter(({ table }) => table === "filter"),
    present: ownChainNames.filter.map((name) => ({ table: "filter", name })),
    fixed: [localnetGuard],
    shared: [],
  };
  const { family, steps } = adopt(have, emptyPlan("ipv4", foundation));
  return { family, steps: steps.filter(({ table }) => table === "filter") };
}

/** Masqueraded traffic passes even where the FORWARD policy is DROP; packets that conntrack considers invalid are dropped. */
function forwarding(settings: FamilySettings, counters: Counters): Rule[] {
  const counter = counters.invalidDropped ? [counted(counterNames.invalidDropped)] : [];
  return [
    ...(settings.tcpBeLiberal ? [] : [rule(tracked("INVALID"), ...counter, drop)]),
    rule(comment("kubernetes forwarding rules"), marked(settings.masqueradeMark), accept),
    rule(comment("kubernetes forwarding conntrack rule"), tracked("RELATED,ESTABLISHED"), accept),
  ];
}

/** Clears the mark: a packet that enters the stack again with it would be masqueraded twice. */
function masquerading({ masqueradeMark }: FamilySettings): Rule[] {
  return [
    rule(unmarked(masqueradeMark), returnToCaller),
    rule({ kind: "flipMark", mark: masqueradeMark }),
    rule(comment("kubernetes service traffic requiring SNAT"), { kind: "masquerade", randomPorts: true }),
  ];
}

const lastRule = comment("kubernetes service nodeports; NOTE: this must be the last rule in this chain");

function wayToNodePorts(settings: FamilySettings): Rule[] {
  if (settings.nodePortAddresses.kind === "all") {
    return [rule(lastRule, toThisNode, ...withoutLoopback(settings), jump(nodePorts))];
  }
  return nodePortAddresses(settings).map((address) => rule(lastRule, to(address), jump(nodePorts)));
}

function withoutLoopback({ family, localhostNodePorts }: FamilySettings): Match[] {
  if (family === "ipv6") return [notTo("::1/128")];
  return localhostNodePorts ? [] : [notTo("127.0.0.0/8")];
}

/** The addresses of this node inside `nodePortAddresses`, loopback only where NodePorts may answer there. */
function nodePortAddresses(settings: FamilySettings): Address[] {
  const places = settings.nodePortAddresses;
  if (places.kind === "all") return [];
  return settings.localAddresses.filter(
    (address) =>
      places.cidrs.some((cidr) => contains(cidr, address)) &&
      (settings.localhostNodePorts || !isLoopback(address)),
  );
}
