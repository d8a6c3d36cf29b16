// The chains, sets and rules of the nftables Plan that do not depend on a Service.
import { describe, expect, it } from "vitest";
import { elementsOf, restricted, rulesOf, tableOf } from "../../../test/support/nftables-table.ts";
import { ipv4Settings, ipv6Settings, routed } from "../../../test/support/routed.ts";
import type { FamilySettings } from "../../config/resolve/settings.ts";
import { keyed } from "../../model/keyed.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import { unfold } from "../../plan/nftables/plan.ts";
import { route } from "../../routing/routes.ts";
import { compile } from "./compile.ts";

describe("the foundation", () => {
  const table = tableOf([]);

  it("11/4 has exactly kube-proxy's base chains", () => {
    const hooked = [...table.chains.values()].filter(({ hook }) => hook !== null);
    expect(hooked.map(({ name, hook }) => `${name} ${hook!.type} ${hook!.hook} ${hook!.priority}`)).toEqual([
      "filter-prerouting-pre-dnat filter prerouting -110",
      "filter-output-pre-dnat filter output -110",
      "filter-input filter input 0",
      "filter-forward filter forward 0",
      "filter-output filter output 0",
      "nat-prerouting nat prerouting -100",
      "nat-output nat output -100",
      "nat-postrouting nat postrouting 100",
    ]);
  });

  it("11/5 jumps in kube-proxy's order", () => {
    const jumps = (name: string) => rulesOf(table, name);
    expect(jumps("filter-input")).toEqual([
      "ct state new jump nodeport-endpoints-check",
      "ct state new jump service-endpoints-check",
    ]);
    for (const name of ["filter-forward", "filter-output"]) {
      expect(jumps(name)).toEqual([
        "ct state new jump service-endpoints-check",
        "ct state new jump cluster-ips-check",
      ]);
    }
    for (const name of ["filter-prerouting-pre-dnat", "filter-output-pre-dnat"])
      expect(jumps(name)).toEqual(["ct state new jump firewall-check"]);
    for (const name of ["nat-output", "nat-prerouting"]) expect(jumps(name)).toEqual(["jump services"]);
    expect(jumps("nat-postrouting")).toEqual(["jump masquerading"]);
  });

  it("11/6 gives shared sets and maps kube-proxy's types and comments", () => {
    const restrictedTable = tableOf([], restricted);
    const declared = (name: string) => {
      const { key, data, comment } = restrictedTable.sets.get(name)!;
      return [key.join(" . "), data, comment];
    };
    const frontend = "address . protocol . port";
    expect(declared("cluster-ips")).toEqual(["address", null, "Active ClusterIPs"]);
    expect(declared("nodeport-ips")).toEqual(["address", null, "IPs that accept NodePort traffic"]);
    expect(declared("hairpin-connections")).toEqual([
      `address . ${frontend}`,
      null,
      "service hairpin connections",
    ]);
    expect(declared("service-ips")).toEqual([
      frontend,
      "verdict",
      "ClusterIP, ExternalIP and LoadBalancer IP traffic",
    ]);
    expect(declared("service-nodeports")).toEqual(["protocol . port", "verdict", "NodePort traffic"]);
    expect(declared("no-endpoint-services")).toEqual([
      frontend,
      "verdict",
      "vmap to drop or reject packets to services with no endpoints",
    ]);
    expect(declared("no-endpoint-nodeports")).toEqual([
      "protocol . port",
      "verdict",
      "vmap to drop or reject packets to service nodeports with no endpoints",
    ]);
    expect(declared("firewall-ips")).toEqual([
      frontend,
      "verdict",
      "destinations that are subject to LoadBalancerSourceRanges",
    ]);
  });

  it("11/7 is the same in IPv6", () => {
    const six = tableOf([], ipv6Settings);
    expect(six.family).toBe("ip6");
    expect([...six.chains.keys()]).toEqual([...table.chains.keys()]);
    expect([...six.sets]).toEqual([...table.sets]);
    expect(rulesOf(six, "services").at(-1)).toBe(
      "fib daddr type local ip6 daddr != ::1 meta l4proto . th dport vmap @service-nodeports",
    );
  });

  it("11/21 masquerades traffic to cluster IPs of all senders, of all but pods, or of none", () => {
    const first = (settings: Partial<FamilySettings>) =>
      rulesOf(tableOf([], { ...ipv4Settings, ...settings }), "services")[0];
    const mark = "meta mark set meta mark | 0x00004000";
    expect(first({ masqueradeAll: true })).toBe(`ip daddr @cluster-ips ${mark}`);
    expect(first({})).toBe(`ip daddr @cluster-ips ip saddr != 10.0.0.0/8 ${mark}`);
    expect(first({ detector: { kind: "interface", name: "br0" } })).toBe(
      `ip daddr @cluster-ips iifname != "br0" ${mark}`,
    );
    expect(first({ detector: { kind: "interfacePrefix", prefix: "veth" } })).toBe(
      `ip daddr @cluster-ips iifname != "veth*" ${mark}`,
    );
    expect(first({ detector: { kind: "none" } })).toBe(
      "ip daddr . meta l4proto . th dport vmap @service-ips",
    );
  });

  it("11/29 lets NodePorts answer on the listed addresses of this node only", () => {
    const listed = tableOf([], {
      ...restricted,
      localAddresses: ["127.0.0.1", "192.168.0.2", "192.168.1.2"],
    });
    expect(elementsOf(listed, "nodeport-ips")).toEqual(["192.168.0.2"]);
    expect(rulesOf(listed, "services").at(-1)).toBe(
      "ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports",
    );
    expect(rulesOf(listed, "nodeport-endpoints-check")).toEqual([
      "ip daddr @nodeport-ips meta l4proto . th dport vmap @no-endpoint-nodeports",
    ]);
  });

  it("11/29 leaves loopback out, also where it is listed", () => {
    const cidrs = ["127.0.0.0/8", "192.168.0.0/16"];
    const listed = tableOf([], { ...restricted, nodePortAddresses: { kind: "some", cidrs } });
    expect(elementsOf(listed, "nodeport-ips")).toEqual(["192.168.0.2"]);
  });

  it("11/30 needs no set of addresses when NodePorts answer on all but loopback", () => {
    expect(table.sets.has("nodeport-ips")).toBe(false);
    expect(rulesOf(table, "services").at(-1)).toBe(
      "fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @service-nodeports",
    );
    expect(rulesOf(table, "nodeport-endpoints-check")).toEqual([
      "ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @no-endpoint-nodeports",
    ]);
  });

  it("11/33 follows changes of the addresses of this node immediately", () => {
    const before = compile(null, routed([], restricted));
    const wider: FamilySettings = {
      ...restricted,
      nodePortAddresses: { kind: "some", cidrs: ["192.168.0.0/16"] },
    };
    const more = { ...wider, localAddresses: ["192.168.0.2", "192.168.1.2"] };
    expect(elementsOf(unfold(compile(before, routed([], more))), "nodeport-ips")).toEqual([
      "192.168.0.2",
      "192.168.1.2",
    ]);
  });

  it("11/40 11/42 rejects undefined ports of cluster IPs, and drops what is unallocated in ServiceCIDRs", () => {
    expect(rulesOf(table, "cluster-ips-check")).toEqual([
      "ip daddr @cluster-ips reject",
      "ip daddr @service-cidrs drop",
    ]);
    const cidrs = (serviceCIDRs: readonly string[]) => {
      const snapshot = { ports: keyed<ServicePort>(), changed: new Set<string>(), serviceCIDRs };
      return elementsOf(unfold(compile(null, route(null, snapshot, ipv4Settings))), "service-cidrs");
    };
    expect(cidrs([])).toEqual([]);
    expect(cidrs(["172.30.0.0/16", "fd30::/112", "172.30.4.0/24"])).toEqual(["172.30.0.0/16"]);
    expect(cidrs(["172.30.0.1/32"])).toEqual(["172.30.0.1"]);
  });
});
