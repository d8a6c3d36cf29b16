// The six chains of userspace mode, and the jumps that lead to them: ClusterIPs first, NodePorts last.
import type { Foundation, PlacedRule, TableName } from "../../plan/iptables/types.ts";
import { comment, jump, notTracked, rule, toThisNode } from "../iptables/rule.ts";

/** `pods`: what comes in through an interface. `node`: what starts here. */
export const chains = {
  portals: { pods: "KUBE-PORTALS-CONTAINER", node: "KUBE-PORTALS-HOST" },
  nodePorts: { pods: "KUBE-NODEPORT-CONTAINER", node: "KUBE-NODEPORT-HOST" },
  letIn: "KUBE-NODEPORT-NON-LOCAL",
  /** Not of kube-proxy: drops what was sent to the port of a relay itself. */
  firewall: "KUBE-PORTALS-FIREWALL",
} as const;

export const ownChains: readonly { readonly table: TableName; readonly name: string }[] = [
  { table: "nat", name: chains.portals.pods },
  { table: "nat", name: chains.portals.node },
  { table: "nat", name: chains.nodePorts.pods },
  { table: "nat", name: chains.nodePorts.node },
  { table: "filter", name: chains.letIn },
  { table: "filter", name: chains.firewall },
];

/** Without any of these nothing is left of the mode. Each table is committed alone, and kube-proxy 1.25 removes all but the last. */
export const tracesOfUserspace = [
  { table: "nat", name: chains.portals.pods },
  { table: "filter", name: chains.letIn },
  { table: "filter", name: chains.firewall },
] as const;

const portalNote = comment("handle ClusterIPs; NOTE: this must be before the NodePort rules");
const nodePortNote = comment("handle service NodePorts; NOTE: this must be the last rule in the chain");
const letInNote = comment("Ensure that non-local NodePort traffic can flow");
const firewallNote = comment("drop packets to relays that were not redirected");

const jumps: readonly PlacedRule[] = [
  { table: "nat", chain: "PREROUTING", rule: rule(portalNote, jump(chains.portals.pods)) },
  { table: "nat", chain: "OUTPUT", rule: rule(portalNote, jump(chains.portals.node)) },
  { table: "filter", chain: "INPUT", rule: rule(letInNote, jump(chains.letIn)) },
  {
    table: "filter",
    chain: "INPUT",
    rule: rule(firewallNote, notTracked("RELATED,ESTABLISHED,DNAT"), jump(chains.firewall)),
  },
];

const lastJumps: readonly PlacedRule[] = [
  {
    table: "nat",
    chain: "PREROUTING",
    rule: rule(toThisNode, nodePortNote, jump(chains.nodePorts.pods)),
  },
  { table: "nat", chain: "OUTPUT", rule: rule(toThisNode, nodePortNote, jump(chains.nodePorts.node)) },
];

export const allJumps: readonly PlacedRule[] = [...jumps, ...lastJumps];

/** The same with all settings. */
export const foundation: Foundation = {
  jumps,
  lastJumps,
  present: [],
  fixed: [],
  shared: ownChains.map((chain) => ({ ...chain, rules: [] })),
};
