// The chains of one ServicePort: masquerade or not, external entrance, firewall, the choice of an Endpoint.
import { contains } from "../../model/address.ts";
import { type Endpoint, endpointKey } from "../../model/snapshot.ts";
import type { Chain, ChainName, Match, Rule, Target } from "../../plan/iptables/types.ts";
import type { Pool } from "../../routing/pools.ts";
import { markMasquerade } from "./foundation.ts";
import { endpointChain } from "./names.ts";
import { comment, dport, from, fromThisNode, jump, noTarget, podTraffic, proto, rule, to } from "./rule.ts";
import type { Subject } from "./subject.ts";

const toBeMasqueraded = jump(markMasquerade);

/** Each chain with all its rules; a chain that nothing needs is not there. */
export function ownChains(subject: Subject): Chain[] {
  const { names, pools, usesExternal, usesFirewall } = subject;
  const jumps = jumpsOf(subject);
  const whose = subject.comments ? [comment(subject.label)] : [];
  return [
    ...(usesExternal ? [nat(names.external, external(subject))] : []),
    ...(usesFirewall ? [nat(names.firewall, firewall(subject))] : []),
    ...choosing(subject, names.cluster, pools.cluster, jumps),
    ...choosing(subject, names.local, pools.local, jumps),
    ...[...jumps].map(([endpoint, { chain }]) => nat(chain, delivery(subject, whose, endpoint, chain))),
  ];
}

function nat(name: ChainName, rules: readonly Rule[]): Chain {
  return { table: "nat", name, rules };
}

type EndpointJump = Extract<Target, { kind: "jump" }>;

/** The way into the chain of every Endpoint that some frontend can reach. */
function jumpsOf({ port, pools }: Subject): ReadonlyMap<Endpoint, EndpointJump> {
  const reachable = new Set([...pools.cluster.endpoints, ...pools.local.endpoints]);
  return new Map(
    [...reachable].map((endpoint) => [endpoint, { kind: "jump", chain: endpointChain(port, endpoint) }]),
  );
}

/** Policy Local still lets this node and its pods reach the whole cluster: they did not come from outside. */
function external({ port, names, label, settings, external }: Subject): Rule[] {
  const onward = external.served ? [rule(jump(external.chain))] : [];
  if (port.externalPolicy === "cluster") {
    const reason = comment(`masquerade traffic for ${label} external destinations`);
    return [rule(reason, toBeMasqueraded), ...onward];
  }
  const reason = (what: string) => comment(`${what} traffic for ${label} external destinations`);
  const pods = podTraffic(settings.detector, false);
  return [
    ...(pods === null ? [] : [rule(reason("pod"), pods, jump(names.cluster))]),
    rule(reason("masquerade LOCAL"), fromThisNode, toBeMasqueraded),
    rule(reason("route LOCAL"), fromThisNode, jump(names.cluster)),
    ...onward,
  ];
}

/** A node that may use a balancer's address may also hold that address, and then sends from it. */
function firewall({ port, names, label, settings }: Subject): Rule[] {
  const reason = comment(`${label} loadbalancer IP`);
  const nodeAllowed = port.sourceRanges.some((range) => contains(range, settings.nodeIP));
  const sources = [...port.sourceRanges, ...(nodeAllowed ? port.loadBalancerIPs : [])];
  return [
    ...sources.map((source) => rule(reason, from(source), jump(names.external))),
    rule(comment(`other traffic to ${label} will be dropped by KUBE-PROXY-FIREWALL`), noTarget),
  ];
}

/** With affinity, first the endpoint that the client used recently; then an even choice: 1 in n, 1 in n-1, …, the rest. */
function choosing(
  subject: Subject,
  name: ChainName,
  pool: Pool,
  jumps: ReadonlyMap<Endpoint, EndpointJump>,
): Chain[] {
  const { endpoints } = pool;
  if (endpoints.length === 0) return [];
  const { affinity } = subject.port;
  const remembered =
    affinity === null
      ? []
      : endpoints.map((endpoint) => {
          const jump = jumps.get(endpoint)!;
          const seen: Match = { kind: "recentlySeen", list: jump.chain, seconds: affinity.seconds };
          return rule(...choice(subject, endpoint), seen, jump);
        });
  const fresh = endpoints.map((endpoint, i) => {
    const left = endpoints.length - i;
    const chance: Match[] = left === 1 ? [] : [{ kind: "random", oneIn: left }];
    return rule(...choice(subject, endpoint), ...chance, jumps.get(endpoint)!);
  });
  return [nat(name, [...internalMasquerade(subject, name), ...remembered, ...fresh])];
}

function choice({ comments, label }: Subject, endpoint: Endpoint): Match[] {
  return comments ? [comment(`${label} -> ${endpointKey(endpoint)}`)] : [];
}

/** At the cluster IP, a sender that is not a known pod would get no answer that it can match, so it is masqueraded. */
function internalMasquerade({ port, label, settings, internal }: Subject, chain: ChainName): Rule[] {
  if (!internal.served || internal.chain !== chain) return [];
  const others = podTraffic(settings.detector, true);
  if (!settings.masqueradeAll && others === null) return [];
  return [
    rule(
      comment(`${label} cluster IP`),
      proto(port.protocol),
      to(port.clusterIP),
      dport(port.port),
      ...(settings.masqueradeAll || others === null ? [] : [others]),
      toBeMasqueraded,
    ),
  ];
}

/** An Endpoint that reaches itself must not see its own address as the sender. */
function delivery({ port }: Subject, whose: readonly Match[], endpoint: Endpoint, name: ChainName): Rule[] {
  const remember: Match[] = port.affinity === null ? [] : [{ kind: "remember", list: name }];
  return [
    rule(...whose, from(endpoint.address), toBeMasqueraded),
    rule(...whose, ...remember, proto(port.protocol), {
      kind: "dnat",
      address: endpoint.address,
      port: endpoint.port,
    }),
  ];
}
