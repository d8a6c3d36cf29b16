// What iptables mode writes for a Service, held against the templates of the reference.
import { describe, expect, it } from "vitest";
import { counters, external, local, remote, rules, web } from "../../../test/support/iptables-rules.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../test/support/routed.ts";
import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import { print } from "../../plan/iptables/print.ts";
import { compile } from "./compile.ts";

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

  it("10/45 keeps the comments of older Services when a cluster becomes large, until all is compiled again", () => {
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

  it("10/25 distinguishes pods and this node from other senders under policy Local", () => {
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

  it("10/26 cannot distinguish pods without a detector", () => {
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
    "10/27 concerns all senders with masqueradeAll, policy %s",
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

  it("reject all senders when there are no endpoints", () => {
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
