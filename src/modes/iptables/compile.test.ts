// What iptables mode writes, held against the worked example and the templates of the reference.
import { describe, expect, it } from "vitest";
import { endpoint, ipv4Settings, ipv6Settings, routed, servicePort } from "../../../test/support/routed.ts";
import type { FamilySettings } from "../../config/settings.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import { chainsOf, ruleCount } from "../../plan/iptables/plan.ts";
import { print } from "../../plan/iptables/print.ts";
import { ruleInput } from "../../plan/iptables/text.ts";
import type { TableName } from "../../plan/iptables/types.ts";
import { compile } from "./compile.ts";
import type { Counters } from "./foundation.ts";

const counters: Counters = { invalidDropped: true, localhostNodePorts: true };
const noCounters: Counters = { invalidDropped: false, localhostNodePorts: false };

const local = endpoint("10.180.0.1:8443");
const remote = endpoint("10.180.1.1:8443");

const web = servicePort("shop/web:http", {
  endpoints: ["10.180.0.1:8080", "10.180.0.2:8080", "10.180.1.1:8080"].map((at) => endpoint(at)),
});
const front = servicePort("shop/front", {
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
const external = (more: Partial<ServicePort> = {}) =>
  servicePort("shop/x", { nodePort: 30080, endpoints: [local, remote], ...more });

/** `chain: rule` as it is fed to the kernel, for chains whose name starts so. */
function rules(
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

describe("without Services", () => {
  it("10/11 10/13 holds the constant rules and the way to NodePorts", () => {
    expect(rules("nat", "KUBE-", [])).toEqual([
      "-A KUBE-MARK-MASQ -j MARK --or-mark 0x00004000",
      "-A KUBE-POSTROUTING -m mark ! --mark 0x00004000/0x00004000 -j RETURN",
      "-A KUBE-POSTROUTING -j MARK --xor-mark 0x00004000",
      '-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
      `-A KUBE-SERVICES ${last} -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS`,
    ]);
    expect(rules("filter", "KUBE-", [])).toEqual(filterExample.filter((line) => !line.includes("shop/")));
  });

  it("10/12 10/13 has no rule for 127.0.0.0/8 in IPv6, but the chain", () => {
    const plan = compile(null, routed([], ipv6Settings), counters);
    expect(print(plan)).toContain(":KUBE-FIREWALL - [0:0]\n");
    expect(print(plan)).not.toContain("-A KUBE-FIREWALL");
    expect(rules("nat", "KUBE-SERVICES", [], ipv6Settings)).toEqual([
      `-A KUBE-SERVICES ${last} -m addrtype --dst-type LOCAL ! -d ::1/128 -j KUBE-NODEPORTS`,
    ]);
  });

  it("10/13 keeps NodePorts off loopback when told so", () => {
    expect(rules("nat", "KUBE-SERVICES", [], { ...ipv4Settings, localhostNodePorts: false })).toEqual([
      `-A KUBE-SERVICES ${last} -m addrtype --dst-type LOCAL ! -d 127.0.0.0/8 -j KUBE-NODEPORTS`,
    ]);
  });

  it("10/5 prints the jumps as they stand on a fresh host", () => {
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

describe("the choice of an endpoint", () => {
  it("10/20 is even", () => {
    const chances = rules("nat", "KUBE-SVC", [web]).map((line) => /--probability (\S+)/.exec(line)?.[1]);
    expect(chances).toEqual([undefined, "0.3333333333", "0.5000000000", undefined]);
  });

  it("10/23 10/24 begins with the endpoints that remember the client", () => {
    const sticky = servicePort("shop/s", { affinity: { seconds: 77 }, endpoints: [local, remote] });
    expect(rules("nat", "KUBE-SVC", [sticky]).slice(1)).toEqual([
      '-A KUBE-SVC -m comment --comment "shop/s -> 10.180.0.1:8443" -m recent --name KUBE-SEP --rcheck --seconds 77 --reap -j KUBE-SEP',
      '-A KUBE-SVC -m comment --comment "shop/s -> 10.180.1.1:8443" -m recent --name KUBE-SEP --rcheck --seconds 77 --reap -j KUBE-SEP',
      '-A KUBE-SVC -m comment --comment "shop/s -> 10.180.0.1:8443" -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP',
      '-A KUBE-SVC -m comment --comment "shop/s -> 10.180.1.1:8443" -j KUBE-SEP',
    ]);
    expect(rules("nat", "KUBE-SEP", [sticky])[1]).toBe(
      "-A KUBE-SEP -m comment --comment shop/s -m recent --name KUBE-SEP --set -m tcp -p tcp -j DNAT --to-destination 10.180.0.1:8443",
    );
  });

  it("10/37 10/39 falls back to draining endpoints, for the cluster and for this node apart", () => {
    const draining = endpoint("10.180.0.1:8443", { state: "draining" });
    const port = external({ externalPolicy: "local", endpoints: [draining, remote] });
    expect(rules("nat", "KUBE-SVL", [port])).toEqual([
      '-A KUBE-SVL -m comment --comment "shop/x -> 10.180.0.1:8443" -j KUBE-SEP',
    ]);
    expect(rules("nat", "KUBE-SVC", [port]).slice(1)).toEqual([
      '-A KUBE-SVC -m comment --comment "shop/x -> 10.180.1.1:8443" -j KUBE-SEP',
    ]);
  });

  it("10/44 02/30 loses its comments in a large cluster, and only these", () => {
    const many = (n: number) =>
      servicePort("shop/many", {
        endpoints: Array.from({ length: n }, (_, i) => endpoint(`10.180.${i >> 8}.${i & 255}:80`)),
      });
    const withComment = (n: number, chain: string) =>
      rules("nat", chain, [many(n)]).filter((line) => line.includes("--comment"));
    expect(withComment(1000, "KUBE-SEP")).toHaveLength(2000);
    expect(withComment(1001, "KUBE-SEP")).toHaveLength(0);
    expect(withComment(1001, "KUBE-SVC")).toHaveLength(1);
    expect(withComment(1001, "KUBE-SERVICES")).toHaveLength(2);
  });

  it("10/45 keeps the comments of older Services when a cluster becomes large, until all is compiled anew", () => {
    const many = servicePort("shop/many", {
      clusterIP: "172.30.0.99",
      endpoints: Array.from({ length: 1001 }, (_, i) => endpoint(`10.180.${i >> 8}.${i & 255}:80`)),
    });
    const first = routed([web]);
    const second = routed([web, many], ipv4Settings, first);
    const grown = compile(compile(null, first, counters), second, counters);
    expect(print(grown)).toContain('"shop/web:http -> 10.180.0.1:8080"');
    expect(print(grown)).not.toContain('"shop/many -> ');
    expect(print(compile(null, second, counters))).not.toContain('"shop/web:http -> ');
  });
});

describe("the external entrance", () => {
  it("10/25 masquerades everything under policy Cluster", () => {
    expect(rules("nat", "KUBE-EXT", [external()])).toEqual([
      '-A KUBE-EXT -m comment --comment "masquerade traffic for shop/x external destinations" -j KUBE-MARK-MASQ',
      "-A KUBE-EXT -j KUBE-SVC",
    ]);
  });

  it("10/25 tells pods and this node apart from others under policy Local", () => {
    const shortcuts = [
      '-A KUBE-EXT -m comment --comment "pod traffic for shop/x external destinations" -s 10.0.0.0/8 -j KUBE-SVC',
      '-A KUBE-EXT -m comment --comment "masquerade LOCAL traffic for shop/x external destinations" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ',
      '-A KUBE-EXT -m comment --comment "route LOCAL traffic for shop/x external destinations" -m addrtype --src-type LOCAL -j KUBE-SVC',
    ];
    expect(rules("nat", "KUBE-EXT", [external({ externalPolicy: "local" })])).toEqual([
      ...shortcuts,
      "-A KUBE-EXT -j KUBE-SVL",
    ]);
    expect(rules("nat", "KUBE-EXT", [external({ externalPolicy: "local", endpoints: [remote] })])).toEqual(
      shortcuts,
    );
  });

  it("10/26 cannot tell pods apart without a detector", () => {
    const settings: FamilySettings = { ...ipv4Settings, detector: { kind: "none" } };
    const port = external({ externalPolicy: "local" });
    expect(rules("nat", "KUBE-EXT", [port], settings).some((line) => line.includes("pod traffic"))).toBe(
      false,
    );
    expect(rules("nat", "KUBE-SVC", [port], settings)[0]).toContain("shop/x -> ");
  });

  it("10/36 exists for external IPs of a plain cluster IP Service", () => {
    const port = servicePort("shop/e", {
      externalIPs: ["192.168.99.1"],
      externalPolicy: "local",
      endpoints: [local, remote],
    });
    expect(rules("nat", "KUBE-EXT", [port]).at(-1)).toBe("-A KUBE-EXT -j KUBE-SVL");
    expect(rules("nat", "KUBE-SERVICES", [port])[1]).toBe(
      '-A KUBE-SERVICES -m comment --comment "shop/e external IP" -m tcp -p tcp -d 192.168.99.1 --dport 80 -j KUBE-EXT',
    );
  });

  it("exists but has no rule leading to it when external IPs are not allowed", () => {
    const port = servicePort("shop/e", { externalIPs: ["192.168.99.1"], endpoints: [local] });
    const settings = { ...ipv4Settings, externalIPsAllowed: false };
    expect(rules("nat", "KUBE-EXT", [port], settings)).toHaveLength(2);
    expect(rules("nat", "KUBE-SERVICES", [port], settings)).toHaveLength(2);
  });
});

describe("masquerading at the cluster IP", () => {
  it.each(["cluster", "local"] as const)(
    "10/27 concerns everybody with masqueradeAll, policy %s",
    (internalPolicy) => {
      const port = servicePort("shop/m", { internalPolicy, endpoints: [local] });
      const chain = internalPolicy === "local" ? "KUBE-SVL" : "KUBE-SVC";
      expect(rules("nat", chain, [port], { ...ipv4Settings, masqueradeAll: true })[0]).toBe(
        `-A ${chain} -m comment --comment "shop/m cluster IP" -m tcp -p tcp -d 172.30.0.10 --dport 80 -j KUBE-MARK-MASQ`,
      );
      expect(rules("nat", chain, [port])[0]).toContain("--dport 80 ! -s 10.0.0.0/8 -j KUBE-MARK-MASQ");
    },
  );

  it("goes by interface where the detector does", () => {
    const settings: FamilySettings = {
      ...ipv4Settings,
      detector: { kind: "interfacePrefix", prefix: "pod" },
    };
    expect(rules("nat", "KUBE-SVC", [web], settings)[0]).toContain("--dport 80 ! -i pod+ -j KUBE-MARK-MASQ");
  });
});

describe("load-balancer source ranges", () => {
  const balanced = (more: Partial<ServicePort>) =>
    servicePort("shop/b", { loadBalancerIPs: ["198.51.100.1", "198.51.100.2"], endpoints: [local], ...more });

  it("10/31 admit the balancer's own addresses when this node is inside", () => {
    const sources = (range: string) =>
      rules("nat", "KUBE-FW", [balanced({ sourceRanges: [range] })]).map(
        (line) => / -s (\S+)/.exec(line)?.[1],
      );
    expect(sources("192.168.0.0/24")).toEqual(["192.168.0.0/24", "198.51.100.1", "198.51.100.2", undefined]);
    expect(sources("203.0.113.0/24")).toEqual(["203.0.113.0/24", undefined]);
  });

  it("10/32 10/34 leave no trace when there are none", () => {
    expect(rules("nat", "KUBE-FW", [balanced({})])).toEqual([]);
    expect(rules("filter", "KUBE-PROXY-FIREWALL", [balanced({})])).toEqual([]);
  });

  it("10/30 lead through the firewall chain, and drop the rest in filter, once for each address", () => {
    const port = balanced({ sourceRanges: ["203.0.113.0/24"] });
    expect(rules("nat", "KUBE-SERVICES", [port]).filter((line) => line.includes("-j KUBE-FW"))).toHaveLength(
      2,
    );
    expect(rules("filter", "KUBE-PROXY-FIREWALL", [port])).toHaveLength(2);
  });

  it("reject everybody alike when there are no endpoints", () => {
    const port = balanced({ sourceRanges: ["203.0.113.0/24"], endpoints: [] });
    expect(rules("filter", "KUBE-PROXY-FIREWALL", [port])).toEqual([]);
    expect(rules("filter", "KUBE-EXTERNAL", [port])).toHaveLength(2);
  });
});

it("writes a frontend that two ServicePorts claim for the holder alone", () => {
  const first = servicePort("a/first", { externalIPs: ["192.168.99.1"], endpoints: [local] });
  const second = servicePort("b/second", {
    clusterIP: "172.30.0.11",
    externalIPs: ["192.168.99.1"],
    endpoints: [local],
  });
  const claimed = rules("nat", "KUBE-SERVICES", [first, second]).filter((line) =>
    line.includes("192.168.99.1"),
  );
  expect(claimed).toHaveLength(1);
  expect(claimed[0]).toContain("a/first external IP");
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

const filterExample =
  `-A KUBE-FIREWALL -m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
-A KUBE-PROXY-FIREWALL -m comment --comment "shop/front traffic not accepted by KUBE-FW-HMEZTNV3KF7ANPF4" -m tcp -p tcp -d 198.51.100.7 --dport 443 -j DROP
-A KUBE-NODEPORTS -m comment --comment "shop/front health check node port" -m tcp -p tcp --dport 31000 -j ACCEPT
-A KUBE-SERVICES -m comment --comment "shop/dns:dns has no endpoints" -m udp -p udp -d 172.30.0.12 --dport 53 -j REJECT
-A KUBE-EXTERNAL-SERVICES -m comment --comment "shop/dns:dns has no endpoints" -m udp -p udp -d 192.168.99.5 --dport 53 -j REJECT
-A KUBE-SERVICES -m comment --comment "shop/far:p has no local endpoints" -m tcp -p tcp -d 172.30.0.13 --dport 81 -j DROP
-A KUBE-FORWARD -m conntrack --ctstate INVALID -m nfacct --nfacct-name ct_state_invalid_dropped_pkts -j DROP
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x00004000/0x00004000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`.split(
    "\n",
  );

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
