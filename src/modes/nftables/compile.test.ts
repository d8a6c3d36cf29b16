// The nftables Plan of small clusters, rule by rule and element by element, beside what kube-proxy's would hold.
import { describe, expect, it } from "vitest";
import { elementsOf, far, near, rulesOf, tableOf, web } from "../../../test/support/nftables-table.ts";
import { ipv4Settings, servicePort } from "../../../test/support/routed.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import { countOperations, diff } from "../../plan/nftables/diff.ts";
import { printElements } from "../../plan/nftables/print.ts";
import type { NftTable, Verdict } from "../../plan/nftables/types.ts";
import { walkNftables } from "./walk.ts";

describe("a ServicePort", () => {
  it("11/19 has its local endpoints in the hairpin set, each once", () => {
    const both = [
      web({ endpoints: [near, far] }),
      servicePort("shop/other", { endpoints: [near], port: 81 }),
    ];
    expect(elementsOf(tableOf(both), "hairpin-connections")).toEqual([
      "10.180.0.1 . 10.180.0.1 . tcp . 8080",
    ]);
  });

  it("11/22 masquerades external traffic with policy Cluster, and depends on the sender with policy Local", () => {
    const cluster = tableOf([web({ nodePort: 30_080, endpoints: [near, far] })]);
    expect(rulesOf(cluster, "nodeport/tcp/2")).toEqual([
      "meta mark set meta mark | 0x00004000",
      "dnat ip to meta l4proto . tcp dport . numgen random mod 2 map @nodeport-endpoints",
    ]);
    const local = tableOf([web({ nodePort: 30_080, externalPolicy: "local", endpoints: [near, far] })]);
    expect(rulesOf(local, "nodeport-local/tcp/2")).toEqual([
      "ip saddr 10.0.0.0/8 goto pick-nodeport/tcp/2",
      "fib saddr type local meta mark set meta mark | 0x00004000",
      "fib saddr type local goto pick-nodeport/tcp/2",
      "meta l4proto . th dport vmap @local-nodeports",
    ]);
    expect(elementsOf(local, "local-nodeports")).toEqual(["tcp . 30080 : goto pick-nodeport-local/tcp/1"]);
    const undetected = tableOf([web({ nodePort: 30_080, externalPolicy: "local", endpoints: [near] })], {
      ...ipv4Settings,
      detector: { kind: "none" },
    });
    expect(rulesOf(undetected, "nodeport-local/tcp/1")[0]).toMatch(/^fib saddr type local meta mark/);
  });

  it("11/23 without a local endpoint and with policy Local is reached from this node, and drops the rest", () => {
    const table = tableOf([
      web({ nodePort: 30_080, loadBalancerIPs: ["198.51.100.7"], externalPolicy: "local", endpoints: [far] }),
    ]);
    expect(elementsOf(table, "service-ips")).toContain("198.51.100.7 . tcp . 80 : goto external-local/tcp/1");
    expect(elementsOf(table, "no-endpoint-services")).toEqual([
      '198.51.100.7 . tcp . 80 comment "shop/web" : drop',
    ]);
    expect(elementsOf(table, "service-nodeports")).toEqual(["tcp . 30080 : goto nodeport-local/tcp/1"]);
    expect(elementsOf(table, "no-endpoint-nodeports")).toEqual(['tcp . 30080 comment "shop/web" : drop']);
    expect(elementsOf(table, "local-service-ips")).toEqual([]);
  });

  it("11/24 without endpoints has nothing but refusals, its cluster IP, and its source ranges", () => {
    const table = tableOf([
      web({ nodePort: 30_080, loadBalancerIPs: ["198.51.100.7"], sourceRanges: ["203.0.113.0/25"] }),
    ]);
    const filled = [...table.sets.values()].flatMap((set) =>
      printElements(set, table).map((element) => `${set.name}: ${element}`),
    );
    expect(filled).toEqual([
      "cluster-ips: 172.30.0.10",
      `firewall-ips: 198.51.100.7 . tcp . 80 : goto firewall/${officeHash}`,
      'no-endpoint-services: 172.30.0.10 . tcp . 80 comment "shop/web" : goto reject-chain',
      'no-endpoint-services: 198.51.100.7 . tcp . 80 comment "shop/web" : goto reject-chain',
      'no-endpoint-nodeports: tcp . 30080 comment "shop/web" : goto reject-chain',
      `source-ranges-${officeHash}: 203.0.113.0/25`,
    ]);
  });

  it("11/25 with internal policy Local and no local endpoint drops at its cluster IP only", () => {
    const table = tableOf([web({ nodePort: 30_080, internalPolicy: "local", endpoints: [far] })]);
    expect(elementsOf(table, "no-endpoint-services")).toEqual([
      '172.30.0.10 . tcp . 80 comment "shop/web" : drop',
    ]);
    expect(elementsOf(table, "service-nodeports")).toEqual(["tcp . 30080 : goto nodeport/tcp/1"]);
  });

  it("11/26 11/28 filters sources at its load-balancer addresses only, endpoints or not", () => {
    const more = { loadBalancerIPs: ["198.51.100.7"], externalIPs: ["192.168.99.5"], nodePort: 30_080 };
    for (const endpoints of [[], [near]]) {
      const table = tableOf([web({ ...more, sourceRanges: ["203.0.113.0/25"], endpoints })]);
      expect(elementsOf(table, "firewall-ips")).toEqual([
        `198.51.100.7 . tcp . 80 : goto firewall/${officeHash}`,
      ]);
    }
  });

  it("11/27 allows its load-balancer addresses as sources if this node is in a range", () => {
    const allowed = (sourceRanges: readonly string[]) => {
      const table = tableOf([web({ loadBalancerIPs: ["198.51.100.7"], sourceRanges, endpoints: [near] })]);
      const ranges = [...table.sets.keys()].filter((name) => name.startsWith("source-ranges-"));
      return ranges.flatMap((name) => elementsOf(table, name));
    };
    expect(allowed(["203.0.113.0/25"])).toHaveLength(1);
    expect(allowed(["192.168.0.0/24"])).toEqual(["192.168.0.0/24", "198.51.100.7"]);
  });
});

describe("the way of a packet", () => {
  const around = { localAddresses: ["192.168.0.2"], podInterface: "veth0" };
  const outcome = (table: NftTable, from: string, protocol: "tcp" | "icmp" = "tcp") => {
    const origin = from.startsWith("10.") ? "pod" : "elsewhere";
    const to = { address: "172.30.0.10", protocol, port: 80 };
    return walkNftables(table, { from: { origin, address: from }, to }, around).map(({ outcome }) => outcome);
  };

  it("11/20 is masqueraded when an endpoint on this node reaches itself, and not for other pods", () => {
    const table = tableOf([web({ endpoints: [near] })]);
    expect(outcome(table, "10.180.0.1")).toMatchObject([{ kind: "forward", masquerade: true }]);
    expect(outcome(table, "10.180.0.2")).toMatchObject([{ kind: "forward", masquerade: false }]);
  });

  it("11/26 ends immediately for sources out of range, and with a reject for the others, without endpoints", () => {
    const sourceRanges = ["203.0.113.0/25"];
    const table = tableOf([web({ loadBalancerIPs: ["198.51.100.7"], sourceRanges })]);
    const to = { address: "198.51.100.7", protocol: "tcp", port: 80 } as const;
    const from = (address: string) =>
      walkNftables(table, { from: { origin: "elsewhere", address }, to }, around).map(
        ({ outcome }) => outcome.kind,
      );
    expect([from("203.0.113.2"), from("203.0.113.130")]).toEqual([["reject"], ["drop"]]);
  });

  it("follows the verdict of an element as the kernel does", () => {
    const table = tableOf([web({ endpoints: [near] })]);
    const key = "172.30.0.10 . tcp . 80";
    const at = (map: string, data: Verdict) => {
      const held = new Map(table.elements.get(map)).set(key, { key, data, comment: null });
      const changed = { ...table, elements: new Map(table.elements).set(map, held) };
      return outcome(changed, "10.180.0.2").map(({ kind }) => kind);
    };
    const forwarded = ["forward"];
    expect(at("firewall-ips", { kind: "drop" })).toEqual(["drop"]);
    expect(at("firewall-ips", { kind: "goto", chain: "reject-chain" })).toEqual(["reject"]);
    expect(at("firewall-ips", { kind: "jump", chain: "reject-chain" })).toEqual(["reject"]);
    expect(at("firewall-ips", { kind: "jump", chain: "service-endpoints-check" })).toEqual(forwarded);
    for (const kind of ["accept", "return", "continue", "break"] as const)
      expect([kind, at("firewall-ips", { kind })]).toEqual([kind, forwarded]);
    // Not translated: the check of active cluster IPs rejects it, which comes after the rest of the chain.
    for (const kind of ["accept", "return", "continue", "break"] as const)
      expect([kind, at("service-ips", { kind })]).toEqual([kind, ["reject"]]);
    expect(at("service-ips", { kind: "jump", chain: "pick/tcp/1" })).toEqual(forwarded);
  });

  it("11/41 of an ICMP echo to an active cluster IP ends with port-unreachable", () => {
    expect(outcome(tableOf([web({ endpoints: [near] })]), "10.180.0.2", "icmp")).toEqual([
      { kind: "reject" },
    ]);
  });

  it("11/54 11/55 11/57 is not cut short: no rule matches invalid packets, and nothing is accepted for other programs", () => {
    const table = tableOf([web({ nodePort: 30_080, healthCheckNodePort: 30_081, endpoints: [near] })]);
    const rules = [...table.chains.keys()].flatMap((name) => rulesOf(table, name)).join("\n");
    expect(rules).not.toMatch(/invalid|accept|30081/);
  });
});

describe("session affinity", () => {
  const sticky = (more: Partial<ServicePort> = {}) =>
    web({ affinity: { seconds: 600 }, endpoints: [near, far], ...more });

  it("11/14 is the only reason for chains and sets of a single endpoint", () => {
    const names = (port: ServicePort) => {
      const { chains, sets } = tableOf([port]);
      return [...chains.keys(), ...sets.keys()].filter((name) => /^(endpoint|affinity)-/.test(name));
    };
    expect(names(web({ nodePort: 30_080, endpoints: [near, far] }))).toEqual([]);
    expect(names(sticky())).toHaveLength(4);
  });

  it("11/15 checks for known clients first, then chooses among all, also among one", () => {
    const chosen = (port: ServicePort) => {
      const table = tableOf([port]);
      const name = [...table.chains.keys()].find(
        (each) => each.startsWith("service-") && each.includes("shop/web"),
      );
      return rulesOf(table, name!);
    };
    const two = chosen(sticky());
    expect(two).toHaveLength(3);
    expect(two[0]).toMatch(/^ip saddr @affinity-\w+-shop\/web\/tcp\/__10\.180\.0\.1\/8080 goto endpoint-/);
    expect(two[2]).toMatch(
      /^numgen random mod 2 vmap \{ 0 : goto endpoint-.*10\.180\.0\.1\/8080, 1 : goto endpoint-/,
    );
    expect(chosen(sticky({ endpoints: [near] })).at(-1)).toMatch(
      /^numgen random mod 1 vmap \{ 0 : goto endpoint-/,
    );
  });

  it("11/16 renews the entry of a client with every connection, for the timeout of the Service", () => {
    const table = tableOf([sticky()]);
    const set = [...table.sets.values()].find(({ name }) => name.startsWith("affinity-"))!;
    expect(set).toMatchObject({ key: ["address"], data: null, timeout: 600 });
    const chain = [...table.chains.values()].find(({ name }) => name.startsWith("endpoint-"))!;
    expect(rulesOf(table, chain.name)).toEqual([
      `update @${chain.name.replace("endpoint", "affinity")} { ip saddr }`,
      "meta l4proto tcp dnat to 10.180.0.1:8080",
    ]);
  });

  it("11/18 switched off takes its sets and chains along in the same Patch", () => {
    const patch = diff(tableOf([sticky()]), tableOf([web({ endpoints: [near, far] })]));
    const gone = patch.flatMap((each) =>
      each.kind === "delete set" || each.kind === "delete chain" ? [each.name.split("-")[0]] : [],
    );
    expect(gone).toEqual(["affinity", "affinity", "service", "endpoint", "endpoint"]);
  });
});

describe("one changed ServicePort", () => {
  const others = [servicePort("shop/other", { clusterIP: "172.30.0.11", endpoints: [near] })];

  it("11/43 costs a few operations: new with one endpoint 3, gone 3, unchanged 0", () => {
    const without = tableOf(others);
    const withIt = tableOf([...others, web({ endpoints: [far] })]);
    // Its cluster IP, a verdict and a slot; a picker for one endpoint is there already.
    expect(countOperations(diff(without, withIt))).toBe(3);
    expect(countOperations(diff(withIt, without))).toBe(3);
    expect(diff(withIt, withIt)).toEqual([]);
    expect(countOperations(diff(without, tableOf([...others, web({ endpoints: [near] })])))).toBe(3);
  });

  it("11/45 changes a verdict by deleting its key and adding it again", () => {
    const patch = diff(tableOf([web({ endpoints: [near] })]), tableOf([web({ endpoints: [near, far] })]));
    const verdicts = patch.filter((each) => "items" in each && each.set.name === "service-ips");
    expect(verdicts.map(({ kind }) => kind)).toEqual(["delete elements", "add elements"]);
  });
});

/** Of the list that has `203.0.113.0/25` alone. */
const officeHash = "67cf4f03de30fc962d3dffb94ed01f12";
