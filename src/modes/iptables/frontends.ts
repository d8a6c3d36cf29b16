// Where the traffic of one ServicePort arrives: its rules in the chains that all ServicePorts share.
import type { Address } from "../../model/address.ts";
import type { Match, PlacedRule, TableName, Target } from "../../plan/iptables/types.ts";
import { frontendId } from "../../routing/routes.ts";
import { counterNames, externalServices, nodePorts, proxyFirewall, services } from "./foundation.ts";
import { accept, comment, counted, dport, drop, jump, proto, reject, rule, to, toThisNode } from "./rule.ts";
import type { Subject } from "./subject.ts";

/** In the order in which kube-proxy writes them. */
export function frontendRules(subject: Subject): PlacedRule[] {
  const held = heldAddresses(subject);
  const { port, settings } = subject;
  const externalIPs = settings.externalIPsAllowed ? port.externalIPs.filter(held) : [];
  const balancers = port.loadBalancerIPs.filter(held);
  return [
    ...(held(port.clusterIP) ? [clusterIP(subject)] : []),
    ...externalIPs.flatMap((address) => externalIP(subject, address)),
    ...balancers.flatMap((address) => loadBalancerIP(subject, address)),
    ...balancers.flatMap((address) => refusal(subject, at(subject, address))),
    ...nodePort(subject),
    ...healthCheck(subject),
  ];
}

/** Whether an address is this ServicePort's: one that several claim belongs to the first of them alone. */
function heldAddresses({ routed, port }: Subject): (address: Address) => boolean {
  if (routed.lost.length === 0) return () => true;
  const lost = new Set(routed.lost.map(({ frontend }) => frontendId(frontend)));
  return (address) => !lost.has(`${address}/${port.protocol}/${port.port}`);
}

function clusterIP(subject: Subject): PlacedRule {
  const { label, port, internal } = subject;
  const place = at(subject, port.clusterIP);
  return internal.served
    ? placed("nat", services, [comment(`${label} cluster IP`), ...place], jump(internal.chain))
    : placed("filter", services, [refusalReason(subject), ...place], refusalTarget(subject));
}

function externalIP(subject: Subject, address: Address): PlacedRule[] {
  const place = at(subject, address);
  const entry = placed(
    "nat",
    services,
    [comment(`${subject.label} external IP`), ...place],
    jump(subject.names.external),
  );
  return [...(subject.usesExternal ? [entry] : []), ...refusal(subject, place)];
}

/** What the firewall chain does not let through is still addressed to the balancer in filter, and dropped there. */
function loadBalancerIP(subject: Subject, address: Address): PlacedRule[] {
  const { label, names, usesExternal, usesFirewall } = subject;
  if (!usesExternal) return [];
  const place = at(subject, address);
  const entrance = jump(usesFirewall ? names.firewall : names.external);
  const entry = placed("nat", services, [comment(`${label} loadbalancer IP`), ...place], entrance);
  if (!usesFirewall) return [entry];
  const reason = comment(`${label} traffic not accepted by ${names.firewall}`);
  return [entry, placed("filter", proxyFirewall, [reason, ...place], drop)];
}

function nodePort(subject: Subject): PlacedRule[] {
  const { label, port, names, routed, settings, counters } = subject;
  const holds = routed.lost.every(({ frontend }) => frontend.kind !== "nodePort");
  if (port.nodePort === 0 || !holds) return [];
  const conditions = (...more: Match[]) => [proto(port.protocol), ...more, dport(port.nodePort)];
  const rules: PlacedRule[] = [];
  if (subject.usesExternal) {
    const entrance = jump(names.external);
    if (settings.localhostNodePorts && counters.localhostNodePorts) {
      const onLoopback = [...conditions(to("127.0.0.0/8")), counted(counterNames.localhostNodePorts)];
      rules.push(placed("nat", nodePorts, [comment(label), ...onLoopback], entrance));
    }
    rules.push(placed("nat", nodePorts, [comment(label), ...conditions()], entrance));
  }
  return [...rules, ...refusal(subject, [toThisNode, ...conditions()])];
}

/** With or without endpoints: a load balancer must be able to check. */
function healthCheck({ port, label }: Subject): PlacedRule[] {
  if (port.healthCheckNodePort === 0) return [];
  const reason = comment(`${label} health check node port`);
  return [placed("filter", nodePorts, [reason, proto("tcp"), dport(port.healthCheckNodePort)], accept)];
}

function refusal(subject: Subject, place: readonly Match[]): PlacedRule[] {
  if (subject.external.served) return [];
  return [placed("filter", externalServices, [refusalReason(subject), ...place], refusalTarget(subject))];
}

function refusalReason({ label, pools }: Subject): Match {
  return comment(`${label} has no ${pools.anyUsable ? "local " : ""}endpoints`);
}

function refusalTarget({ pools }: Subject): Target {
  return pools.anyUsable ? drop : reject;
}

function at({ port }: Subject, address: Address): Match[] {
  return [proto(port.protocol), to(address), dport(port.port)];
}

function placed(table: TableName, chain: string, match: readonly Match[], target: Target): PlacedRule {
  return { table, chain, rule: rule(...match, target) };
}
