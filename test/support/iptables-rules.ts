// Services for tests of iptables mode, and the rules that it writes for some.
import type { FamilySettings } from "../../src/config/resolve/settings.ts";
import type { ServicePort } from "../../src/model/snapshot.ts";
import { compile } from "../../src/modes/iptables/compile.ts";
import type { Counters } from "../../src/modes/iptables/foundation.ts";
import { chainsOf } from "../../src/plan/iptables/plan.ts";
import { ruleInput } from "../../src/plan/iptables/text.ts";
import type { TableName } from "../../src/plan/iptables/types.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "./routed.ts";

export const counters: Counters = { invalidDropped: true, localhostNodePorts: true };
export const noCounters: Counters = { invalidDropped: false, localhostNodePorts: false };

export const local = endpoint("10.180.0.1:8443");
export const remote = endpoint("10.180.1.1:8443");

export const web = servicePort("shop/web:http", {
  endpoints: ["10.180.0.1:8080", "10.180.0.2:8080", "10.180.1.1:8080"].map((at) => endpoint(at)),
});
export const front = servicePort("shop/front", {
  clusterIP: "172.30.0.11",
  port: 443,
  nodePort: 30443,
  loadBalancerIPs: ["198.51.100.7"],
  externalPolicy: "local",
  healthCheckNodePort: 31000,
  affinity: { seconds: 600 },
  sourceRanges: ["203.0.113.0/25", "192.168.0.0/24"],
  endpoints: [local, remote],
});
export const external = (more: Partial<ServicePort> = {}) =>
  servicePort("shop/x", { nodePort: 30080, endpoints: [local, remote], ...more });

/** `chain: rule` as sent to the kernel, for chains with this prefix. */
export function rules(
  table: TableName,
  prefix: string,
  ports: readonly ServicePort[],
  settings: FamilySettings = ipv4Settings,
  host: Counters = counters,
): string[] {
  const plan = compile(null, routed(ports, settings), host);
  return chainsOf(plan, table)
    .filter(({ name }) => name.startsWith(prefix))
    .flatMap(({ name, rules }) => rules.map((rule) => `-A ${name} ${ruleInput(rule)}`))
    .map((text) => text.replaceAll(/(KUBE-\w{2,3})-[A-Z2-7]{16}/g, "$1"));
}

/** What is in filter whatever Services there are. */
export const constantFilterRules =
  `-A KUBE-FIREWALL -m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
-A KUBE-FORWARD -m conntrack --ctstate INVALID -m nfacct --nfacct-name ct_state_invalid_dropped_pkts -j DROP
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x00004000/0x00004000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`.split(
    "\n",
  );
