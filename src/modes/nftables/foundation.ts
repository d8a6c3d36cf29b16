// The constant part of the table: hooks, checks and empty maps; it changes only with settings and ServiceCIDRs.
import type { FamilySettings, LocalDetector } from "../../config/resolve/settings.ts";
import { type Cidr, contains, familyOf, isLoopback } from "../../model/address.ts";
import { withoutNested } from "../../model/networks.ts";
import { type Protocol, protocols } from "../../model/snapshot.ts";
import { networkKey } from "../../plan/nftables/key.ts";
import {
  type Chain,
  type Field,
  type Foundation,
  type Hook,
  type NftSet,
  nftFamilyOf,
  type Part,
  type Rule,
  type Statement,
  type Verdict,
} from "../../plan/nftables/types.ts";
import { goto } from "../../plan/nftables/verdict.ts";
import { countedSet, type SlotMap, slotMap } from "./names.ts";

/** Packet fields of the keys by which Frontends are found. */
export const byAddress: readonly Field[] = ["daddr", "l4proto", "dport"];
export const byNodePort: readonly Field[] = ["l4proto", "dport"];

const loopbacks = { ipv4: "127.0.0.0/8", ipv6: "::1/128" } as const;

export function foundation(settings: FamilySettings, serviceCIDRs: readonly Cidr[]): Foundation {
  const refused = refusedOnLoopback(settings);
  return {
    family: nftFamilyOf(settings.family),
    sets: sets(settings, refused),
    counters: refused.map((protocol) => localhostCounter(protocol)),
    chains: [
      ...baseChains(),
      ...checks(settings, refused),
      ...entrance(settings),
      ...refused.map(localhostReject),
    ],
    elements: [
      ...nodePortAddresses(settings).map((key) => ({ set: "nodeport-ips", key, data: null, comment: null })),
      ...withoutNested(serviceCIDRs.filter((cidr) => familyOf(cidr) === settings.family)).map((cidr) => ({
        set: "service-cidrs",
        key: networkKey(cidr),
        data: null,
        comment: null,
      })),
    ],
  };
}

/** Protocols whose NodePorts are refused on loopback; none while the feature is off. */
export function refusedOnLoopback(settings: FamilySettings): readonly Protocol[] {
  switch (settings.nftLocalhost) {
    case "pass":
      return [];
    case "reject":
      return protocols;
    case "serve":
      return ["sctp"];
  }
}

function localhostRejectChain(protocol: Protocol): string {
  return `localhost-nodeport-reject-${protocol}`;
}

/** Verdicts that refuse a packet in a chain of the foundation. */
export const reject = goto("reject-chain");
export const rejectOnLocalhost: Readonly<Record<Protocol, Verdict>> = {
  tcp: goto(localhostRejectChain("tcp")),
  udp: goto(localhostRejectChain("udp")),
  sctp: goto(localhostRejectChain("sctp")),
};

/** Statement that holds for traffic of pods on this node, or for all other traffic; null without a detector. */
export function fromPod(detector: LocalDetector, not: boolean): Statement | null {
  switch (detector.kind) {
    case "none":
      return null;
    case "cidr":
      return { kind: "address", field: "saddr", not, network: detector.cidr };
    case "interface":
      return { kind: "iifname", not, name: detector.name, prefix: false };
    case "interfacePrefix":
      return { kind: "iifname", not, name: detector.prefix, prefix: true };
  }
}

export function rule(...statements: readonly Statement[]): Rule {
  return { statements, comment: null };
}

export function commented(comment: string, ...statements: readonly Statement[]): Rule {
  return { statements, comment };
}

function sets(settings: FamilySettings, refused: readonly Protocol[]): readonly NftSet[] {
  const frontend: readonly Part[] = ["address", "protocol", "port"];
  const nodePort: readonly Part[] = ["protocol", "port"];
  return [
    set("cluster-ips", ["address"], "Active ClusterIPs"),
    ...(settings.nodePortAddresses.kind === "some"
      ? [set("nodeport-ips", ["address"], "IPs that accept NodePort traffic")]
      : []),
    set("hairpin-connections", ["address", "address", "protocol", "port"], "service hairpin connections"),
    {
      ...set("service-cidrs", ["address"], "ServiceCIDRs: traffic to unallocated addresses is dropped"),
      interval: true,
    },
    vmap("firewall-ips", frontend, "destinations that are subject to LoadBalancerSourceRanges"),
    vmap("no-endpoint-services", frontend, "vmap to drop or reject packets to services with no endpoints"),
    vmap(
      "no-endpoint-nodeports",
      nodePort,
      "vmap to drop or reject packets to service nodeports with no endpoints",
    ),
    vmap("service-ips", frontend, "ClusterIP, ExternalIP and LoadBalancer IP traffic"),
    vmap("service-nodeports", nodePort, "NodePort traffic"),
    vmap("local-service-ips", frontend, "policy Local: traffic from outside"),
    vmap("local-nodeports", nodePort, "policy Local: NodePort traffic from outside"),
    slots("endpoints", frontend, "endpoints of each address", settings),
    slots(
      "local-endpoints",
      frontend,
      "policy Local: endpoints of each address for traffic from outside",
      settings,
    ),
    slots("nodeport-endpoints", nodePort, "endpoints of each NodePort", settings),
    slots(
      "local-nodeport-endpoints",
      nodePort,
      "policy Local: endpoints of each NodePort for traffic from outside",
      settings,
    ),
    ...(settings.traffic === "off" ? [] : countedSets(frontend, nodePort)),
    ...(refused.length > 0
      ? [vmap("localhost-nodeport-reject-ports", nodePort, "localhost NodePorts rejected by kube-proxy")]
      : []),
  ];
}

function set(name: string, key: readonly Part[], comment: string): NftSet {
  return { name, key, data: null, interval: false, timeout: null, comment };
}

function vmap(name: string, key: readonly Part[], comment: string): NftSet {
  return { ...set(name, key, comment), data: "verdict" };
}

function slots(
  name: SlotMap,
  key: readonly Part[],
  comment: string,
  { traffic }: Pick<FamilySettings, "traffic">,
): NftSet {
  const made = set(slotMap(name, traffic), [...key, "slot"], comment);
  return { ...made, data: ["address", "port"], ...(traffic === "endpoints" ? { counted: true } : {}) };
}

/** Sets that count. An element stays for as long as its frontend exists, so nothing is lost when endpoints change. */
function countedSets(frontend: readonly Part[], nodePort: readonly Part[]): readonly NftSet[] {
  const counted = (name: string, key: readonly Part[], comment: string): NftSet => ({
    ...set(name, key, comment),
    counted: true,
  });
  return [
    counted(countedSet.ips, frontend, "connections to each address"),
    counted(countedSet.nodePorts, nodePort, "connections to each NodePort"),
    counted(countedSet.refusedIPs, frontend, "packets to each address for which there was no endpoint"),
    counted(
      countedSet.refusedNodePorts,
      nodePort,
      "packets to each NodePort for which there was no endpoint",
    ),
    counted(countedSet.outOfRange, frontend, "packets dropped because of LoadBalancerSourceRanges"),
  ];
}

function baseChains(): readonly Chain[] {
  const filter = (hook: Hook["hook"], priority: number): Hook => ({ type: "filter", hook, priority });
  const nat = (hook: Hook["hook"], priority: number): Hook => ({ type: "nat", hook, priority });
  const check = (chain: string) => rule({ kind: "ct state new" }, { kind: "jump", chain });
  const jump = (chain: string) => rule({ kind: "jump", chain });
  return [
    hooked("filter-prerouting-pre-dnat", filter("prerouting", -110), [check("firewall-check")]),
    hooked("filter-output-pre-dnat", filter("output", -110), [check("firewall-check")]),
    hooked("filter-input", filter("input", 0), [
      check("nodeport-endpoints-check"),
      check("service-endpoints-check"),
    ]),
    hooked("filter-forward", filter("forward", 0), [
      check("service-endpoints-check"),
      check("cluster-ips-check"),
    ]),
    hooked("filter-output", filter("output", 0), [
      check("service-endpoints-check"),
      check("cluster-ips-check"),
    ]),
    hooked("nat-prerouting", nat("prerouting", -100), [jump("services")]),
    hooked("nat-output", nat("output", -100), [jump("services")]),
    hooked("nat-postrouting", nat("postrouting", 100), [jump("masquerading")]),
  ];
}

function hooked(name: string, hook: Hook, rules: readonly Rule[]): Chain {
  return { name, hook, rules, comment: null };
}

function chain(name: string, rules: readonly Rule[], comment: string | null = null): Chain {
  return { name, hook: null, rules, comment };
}

/** Chains that refuse packets: source ranges, missing endpoints, undefined ports and unallocated addresses. */
function checks(settings: FamilySettings, refused: readonly Protocol[]): readonly Chain[] {
  const loopback = loopbacks[settings.family];
  return [
    chain(
      "reject-chain",
      [rule({ kind: "reject" })],
      "helper for @no-endpoint-services / @no-endpoint-nodeports",
    ),
    chain("firewall-check", [rule({ kind: "vmap", fields: byAddress, map: "firewall-ips" })]),
    chain("service-endpoints-check", [
      // As often as the same packet was counted on its way in: later packets of a flow are not.
      ...countIn(countedSet.refusedIPs, byAddress, settings, { kind: "ct status ! confirmed" }),
      rule({ kind: "vmap", fields: byAddress, map: "no-endpoint-services" }),
    ]),
    chain("nodeport-endpoints-check", [
      ...countIn(countedSet.refusedNodePorts, byNodePort, settings, servesNodePorts(settings)),
      rule(servesNodePorts(settings), { kind: "vmap", fields: byNodePort, map: "no-endpoint-nodeports" }),
      ...(refused.length > 0
        ? [
            rule(
              { kind: "address", field: "daddr", not: false, network: loopback },
              { kind: "vmap", fields: byNodePort, map: "localhost-nodeport-reject-ports" },
            ),
          ]
        : []),
    ]),
    chain("cluster-ips-check", [
      commented(
        "Reject traffic to invalid ports of ClusterIPs",
        { kind: "in set", fields: ["daddr"], set: "cluster-ips" },
        { kind: "reject" },
      ),
      commented(
        "Drop traffic to unallocated ClusterIPs",
        { kind: "in set", fields: ["daddr"], set: "service-cidrs" },
        { kind: "drop" },
      ),
    ]),
  ];
}

/** Chains that lead packets to a picker, and what happens to them after it. */
function entrance(settings: FamilySettings): readonly Chain[] {
  const { masqueradeMark: mark } = settings;
  const isNodePort: readonly Statement[] = [
    ...(settings.nodePortAddresses.kind === "all" ? [{ kind: "fib local", field: "daddr" } as const] : []),
    servesNodePorts(settings),
  ];
  return [
    chain("services", [
      ...masqueradeClusterIPs(settings),
      ...countIn(countedSet.ips, byAddress, settings),
      rule({ kind: "vmap", fields: byAddress, map: "service-ips" }),
      ...countIn(countedSet.nodePorts, byNodePort, settings, ...isNodePort),
      rule(...isNodePort, { kind: "vmap", fields: byNodePort, map: "service-nodeports" }),
    ]),
    chain("masquerading", [
      rule({ kind: "marked", mark }, { kind: "set mark", how: "xor", mark }, { kind: "masquerade" }),
      rule(
        { kind: "ct status dnat" },
        { kind: "in set", fields: ["saddr", "daddr", "l4proto", "dport"], set: "hairpin-connections" },
        { kind: "masquerade" },
      ),
    ]),
  ];
}

/** A rule that counts a packet in the element it matches, and lets it pass on. */
function countIn(
  name: string,
  fields: readonly Field[],
  { traffic }: FamilySettings,
  ...first: readonly Statement[]
): readonly Rule[] {
  return traffic === "off" ? [] : [rule(...first, { kind: "in set", fields, set: name })];
}

function masqueradeClusterIPs({
  masqueradeAll,
  detector,
  masqueradeMark: mark,
}: FamilySettings): readonly Rule[] {
  const toClusterIP: Statement = { kind: "in set", fields: ["daddr"], set: "cluster-ips" };
  const masquerade: Statement = { kind: "set mark", how: "or", mark };
  if (masqueradeAll) return [commented("masquerade all clusterIP traffic", toClusterIP, masquerade)];
  const notFromPod = fromPod(detector, true);
  if (notFromPod === null) return [];
  return [
    commented("masquerade clusterIP traffic from outside cluster", toClusterIP, notFromPod, masquerade),
  ];
}

function servesNodePorts(settings: FamilySettings): Statement {
  if (settings.nodePortAddresses.kind === "some")
    return { kind: "in set", fields: ["daddr"], set: "nodeport-ips" };
  return { kind: "address", field: "daddr", not: true, network: loopbacks[settings.family] };
}

function nodePortAddresses({ nodePortAddresses: places, localAddresses }: FamilySettings): readonly string[] {
  if (places.kind === "all") return [];
  return localAddresses.filter(
    (address) => !isLoopback(address) && places.cidrs.some((cidr) => contains(cidr, address)),
  );
}

function localhostCounter(protocol: Protocol): string {
  return `localhost-nodeport-rejected-${protocol}`;
}

function localhostReject(protocol: Protocol): Chain {
  const counter = localhostCounter(protocol);
  return chain(localhostRejectChain(protocol), [rule({ kind: "count", counter }, { kind: "reject" })]);
}
