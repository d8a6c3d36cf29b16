// The five chains of userspace mode, and the jumps that lead to them: ClusterIPs first, NodePorts last.
import type { Foundation, PlacedRule, TableName } from "../../plan/iptables/types.ts";
import { comment, jump, rule, toThisNode } from "../iptables/words.ts";

/** `pods`: what comes in through an interface. `node`: what starts here. */
export const chains = {
  portals: { pods: "KUBE-PORTALS-CONTAINER", node: "KUBE-PORTALS-HOST" },
  nodePorts: { pods: "KUBE-NODEPORT-CONTAINER", node: "KUBE-NODEPORT-HOST" },
  letIn: "KUBE-NODEPORT-NON-LOCAL",
} as const;

export const ownChains: readonly { readonly table: TableName; readonly name: string }[] = [
  { table: "nat", name: chains.portals.pods },
  { table: "nat", name: chains.portals.node },
  { table: "nat", name: chains.nodePorts.pods },
  { table: "nat", name: chains.nodePorts.node },
  { table: "filter", name: chains.letIn },
];

const portalNote = comment("handle ClusterIPs; NOTE: this must be before the NodePort rules");
const nodePortNote = comment("handle service NodePorts; NOTE: this must be the last rule in the chain");
const letInNote = comment("Ensure that non-local NodePort traffic can flow");

const jumps: readonly PlacedRule[] = [
  { table: "nat", chain: "PREROUTING", rule: rule(portalNote, jump(chains.portals.pods)) },
  { table: "nat", chain: "OUTPUT", rule: rule(portalNote, jump(chains.portals.node)) },
  { table: "filter", chain: "INPUT", rule: rule(letInNote, jump(chains.letIn)) },
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

/** The same whatever the settings say. */
export const foundation: Foundation = {
  jumps,
  lastJumps,
  present: [],
  fixed: [],
  shared: ownChains.map((chain) => ({ ...chain, rules: [] })),
};
