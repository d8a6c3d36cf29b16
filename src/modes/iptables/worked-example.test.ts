// What iptables mode writes, held against the worked example of the reference.
import { describe, expect, it } from "vitest";
import { constantFilterRules, counters, front, web } from "../../../test/support/iptables-rules.ts";
import { endpoint, routed, servicePort } from "../../../test/support/routed.ts";
import { chainsOf, ruleCount } from "../../plan/iptables/plan.ts";
import { print } from "../../plan/iptables/print.ts";
import { ruleInput } from "../../plan/iptables/text.ts";
import { compile } from "./compile.ts";

const dns = servicePort("shop/dns:dns", {
  clusterIP: "172.30.0.12",
  port: 53,
  protocol: "udp",
  externalIPs: ["192.168.99.5"],
});
const far = servicePort("shop/far:p", {
  clusterIP: "172.30.0.13",
  port: 81,
  internalPolicy: "local",
  endpoints: [endpoint("10.180.1.1:81")],
});
describe("the worked example", () => {
  const plan = compile(null, routed([web, front, dns, far]), counters);

  it("10/2 10/30 10/31 is printed as iptables-save prints it", () => {
    const text = print(plan);
    for (const line of workedExample) expect(text).toContain(`${line}\n`);
  });

  it("10/28 10/29 10/35 has these rules in filter", () => {
    const lines = chainsOf(plan, "filter").flatMap(({ name, rules }) =>
      rules.map((rule) => `-A ${name} ${ruleInput(rule)}`),
    );
    expect(lines.sort()).toEqual([...filterExample].sort());
  });

  it("10/55 counts the rules it holds, jumps and chain lines left out", () => {
    const rulesIn = (table: "filter" | "nat") =>
      chainsOf(plan, table).reduce((sum, { rules }) => sum + rules.length, 0);
    expect(ruleCount(plan, "filter")).toBe(rulesIn("filter"));
    expect(ruleCount(plan, "nat")).toBe(rulesIn("nat"));
  });
});

const filterExample = [
  ...constantFilterRules,
  ...`-A KUBE-PROXY-FIREWALL -m comment --comment "shop/front traffic not accepted by KUBE-FW-HMEZTNV3KF7ANPF4" -m tcp -p tcp -d 198.51.100.7 --dport 443 -j DROP
-A KUBE-NODEPORTS -m comment --comment "shop/front health check node port" -m tcp -p tcp --dport 31000 -j ACCEPT
-A KUBE-SERVICES -m comment --comment "shop/dns:dns has no endpoints" -m udp -p udp -d 172.30.0.12 --dport 53 -j REJECT
-A KUBE-EXTERNAL-SERVICES -m comment --comment "shop/dns:dns has no endpoints" -m udp -p udp -d 192.168.99.5 --dport 53 -j REJECT
-A KUBE-SERVICES -m comment --comment "shop/far:p has no local endpoints" -m tcp -p tcp -d 172.30.0.13 --dport 81 -j DROP`.split(
    "\n",
  ),
];

const workedExample =
  `-A KUBE-EXT-HMEZTNV3KF7ANPF4 -s 10.0.0.0/8 -m comment --comment "pod traffic for shop/front external destinations" -j KUBE-SVC-HMEZTNV3KF7ANPF4
-A KUBE-EXT-HMEZTNV3KF7ANPF4 -m comment --comment "masquerade LOCAL traffic for shop/front external destinations" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ
-A KUBE-EXT-HMEZTNV3KF7ANPF4 -m comment --comment "route LOCAL traffic for shop/front external destinations" -m addrtype --src-type LOCAL -j KUBE-SVC-HMEZTNV3KF7ANPF4
-A KUBE-EXT-HMEZTNV3KF7ANPF4 -j KUBE-SVL-HMEZTNV3KF7ANPF4
-A KUBE-FW-HMEZTNV3KF7ANPF4 -s 203.0.113.0/25 -m comment --comment "shop/front loadbalancer IP" -j KUBE-EXT-HMEZTNV3KF7ANPF4
-A KUBE-FW-HMEZTNV3KF7ANPF4 -s 192.168.0.0/24 -m comment --comment "shop/front loadbalancer IP" -j KUBE-EXT-HMEZTNV3KF7ANPF4
-A KUBE-FW-HMEZTNV3KF7ANPF4 -s 198.51.100.7/32 -m comment --comment "shop/front loadbalancer IP" -j KUBE-EXT-HMEZTNV3KF7ANPF4
-A KUBE-FW-HMEZTNV3KF7ANPF4 -m comment --comment "other traffic to shop/front will be dropped by KUBE-PROXY-FIREWALL"
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-NODEPORTS -d 127.0.0.0/8 -p tcp -m comment --comment "shop/front" -m tcp --dport 30443 -m nfacct --nfacct-name  localhost_nps_accepted_pkts -j KUBE-EXT-HMEZTNV3KF7ANPF4
-A KUBE-NODEPORTS -p tcp -m comment --comment "shop/front" -m tcp --dport 30443 -j KUBE-EXT-HMEZTNV3KF7ANPF4
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
-A KUBE-SEP-GTW5LZEWNUWYQQAZ -s 10.180.0.1/32 -m comment --comment "shop/front" -j KUBE-MARK-MASQ
-A KUBE-SEP-GTW5LZEWNUWYQQAZ -p tcp -m comment --comment "shop/front" -m recent --set --name KUBE-SEP-GTW5LZEWNUWYQQAZ --mask 255.255.255.255 --rsource -m tcp -j DNAT --to-destination 10.180.0.1:8443
-A KUBE-SEP-ZZ5QQVSVEYRRQLTX -s 10.180.0.1/32 -m comment --comment "shop/web:http" -j KUBE-MARK-MASQ
-A KUBE-SEP-ZZ5QQVSVEYRRQLTX -p tcp -m comment --comment "shop/web:http" -m tcp -j DNAT --to-destination 10.180.0.1:8080
-A KUBE-SERVICES -d 172.30.0.10/32 -p tcp -m comment --comment "shop/web:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-67NZLRHBNDSAWJRO
-A KUBE-SERVICES -d 172.30.0.11/32 -p tcp -m comment --comment "shop/front cluster IP" -m tcp --dport 443 -j KUBE-SVC-HMEZTNV3KF7ANPF4
-A KUBE-SERVICES -d 198.51.100.7/32 -p tcp -m comment --comment "shop/front loadbalancer IP" -m tcp --dport 443 -j KUBE-FW-HMEZTNV3KF7ANPF4
-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-SVC-67NZLRHBNDSAWJRO ! -s 10.0.0.0/8 -d 172.30.0.10/32 -p tcp -m comment --comment "shop/web:http cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ
-A KUBE-SVC-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http -> 10.180.0.1:8080" -m statistic --mode random --probability 0.33333333349 -j KUBE-SEP-ZZ5QQVSVEYRRQLTX
-A KUBE-SVC-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http -> 10.180.0.2:8080" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-NNNEV75MEFSEEVMF
-A KUBE-SVC-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http -> 10.180.1.1:8080" -j KUBE-SEP-YCI5FLUZZZWLO7SW
-A KUBE-SVL-HMEZTNV3KF7ANPF4 -m comment --comment "shop/front -> 10.180.0.1:8443" -m recent --rcheck --seconds 600 --reap --name KUBE-SEP-GTW5LZEWNUWYQQAZ --mask 255.255.255.255 --rsource -j KUBE-SEP-GTW5LZEWNUWYQQAZ
-A KUBE-SVL-HMEZTNV3KF7ANPF4 -m comment --comment "shop/front -> 10.180.0.1:8443" -j KUBE-SEP-GTW5LZEWNUWYQQAZ`.split(
    "\n",
  );
