// Counters per Service: none when they are off, elements that only depend on frontends, and maps that count endpoints.
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { endpoint, ipv4Settings, ipv6Settings, routed, servicePort } from "../../../test/support/routed.ts";
import type { FamilySettings, TrafficSetting } from "../../config/resolve/settings.ts";
import { encode } from "../../host/netlink/batch.ts";
import { encodePatch } from "../../host/nftables/encode.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import { countOperations, diff } from "../../plan/nftables/diff.ts";
import { unfold } from "../../plan/nftables/plan.ts";
import { print } from "../../plan/nftables/print.ts";
import type { NftTable } from "../../plan/nftables/types.ts";
import { compile } from "./compile.ts";
import { countedSet } from "./names.ts";

const pods = ["10.180.0.5:8080", "10.180.1.5:8080"].map((at) => endpoint(at));

const web = servicePort("shop/web:http", {
  nodePort: 30080,
  externalIPs: ["198.51.100.1"],
  loadBalancerIPs: ["203.0.113.9"],
  sourceRanges: ["192.0.2.0/24"],
  endpoints: pods,
});
const sticky = servicePort("shop/sticky", {
  clusterIP: "172.30.0.11",
  affinity: { seconds: 60 },
  endpoints: pods,
});
const empty = servicePort("shop/empty", { clusterIP: "172.30.0.12" });
const ports = [web, sticky, empty];

function tableWith(
  traffic: TrafficSetting,
  some: readonly ServicePort[] = ports,
  base = ipv4Settings,
): NftTable {
  const settings: FamilySettings = { ...base, traffic };
  return unfold(compile(null, routed(some, settings)));
}

const countedNames = Object.values(countedSet);

describe("off", () => {
  it("has no object that counts", () => {
    const table = tableWith("off");
    expect([...table.sets.values()].filter(({ counted }) => counted)).toEqual([]);
    expect(print(table)).not.toContain("counter");
    for (const name of countedNames) expect(table.sets.has(name)).toBe(false);
  });

  it("sends the kernel the same bytes as before there were counters", () => {
    const bytesOf = (table: NftTable) =>
      encode(
        encodePatch(diff(null, table), { family: table.family, tableFlags: 0 }).map(
          ({ operation }) => operation,
        ),
      ).bytes;
    const both = [tableWith("off"), tableWith("off", [], ipv6Settings)].map(bytesOf);
    const digest = createHash("sha256");
    for (const bytes of both) digest.update(bytes);
    expect(digest.digest("hex")).toBe("966877d6ebd6b7cf9a3f759b96b2139de42affb593557776f9bf9a377a79dc61");
  });
});

describe("services", () => {
  const table = tableWith("services");
  const keysIn = (name: string) => [...(table.elements.get(name)?.keys() ?? [])].toSorted();

  it("counts connections and refused packets of every frontend, whether it has endpoints or not", () => {
    const addresses = ["172.30.0.10", "172.30.0.11", "172.30.0.12", "198.51.100.1", "203.0.113.9"];
    for (const name of [countedSet.ips, countedSet.refusedIPs])
      expect(keysIn(name)).toEqual(addresses.map((address) => `${address} . tcp . 80`));
    for (const name of [countedSet.nodePorts, countedSet.refusedNodePorts])
      expect(keysIn(name)).toEqual(["tcp . 30080"]);
  });

  it("counts packets outside the source ranges where there are any", () => {
    expect(keysIn(countedSet.outOfRange)).toEqual(["203.0.113.9 . tcp . 80"]);
  });

  it("declares the counter, so that nft loads what it lists", () => {
    expect(print(table)).toContain(
      [
        "\tset traffic-nodeports {",
        "\t\ttype inet_proto . inet_service",
        "\t\tcounter",
        '\t\tcomment "connections to each NodePort"',
        "\t\telements = { tcp . 30080 counter packets 0 bytes 0 }",
      ].join("\n"),
    );
  });

  it("counts a connection before it is translated, and a packet before it is refused", () => {
    const statements = (chain: string) =>
      table.chains
        .get(chain)!
        .rules.flatMap(({ statements: all }) => all)
        .flatMap((each) => ("set" in each ? [each.set] : "map" in each ? [each.map] : []));
    expect(statements("services")).toEqual([
      "cluster-ips",
      "traffic-ips",
      "service-ips",
      "traffic-nodeports",
      "service-nodeports",
    ]);
    expect(statements("service-endpoints-check")).toEqual(["refused-ips", "no-endpoint-services"]);
    expect(statements("nodeport-endpoints-check")).toEqual(["refused-nodeports", "no-endpoint-nodeports"]);
  });

  it("keeps every element that counts when endpoints come and go", () => {
    const settings: FamilySettings = { ...ipv4Settings, traffic: "services" };
    const before = routed(ports, settings);
    const scaled = { ...web, endpoints: [...pods, endpoint("10.180.1.6:8080")] };
    const after = routed([scaled, sticky, { ...empty, endpoints: pods }], settings, before);
    const [old, now] = [unfold(compile(null, before)), unfold(compile(null, after))];
    const touched = diff(old, now).flatMap((operation) =>
      "items" in operation && operation.set.counted ? operation.items : [],
    );
    expect(touched).toEqual([]);
    expect(countOperations(diff(old, now))).toBeGreaterThan(0);
  });

  it("is written as a difference to a table without counters: maps and endpoints stay", () => {
    const operations = diff(tableWith("off"), table);
    expect(operations.filter(({ kind }) => kind === "delete table")).toEqual([]);
    const written = operations.flatMap((operation) => ("items" in operation ? [operation.set.name] : []));
    expect(new Set(written)).toEqual(new Set(countedNames));
  });
});

describe("endpoints", () => {
  const table = tableWith("endpoints");

  it("counts in the maps of endpoints, which have other names", () => {
    expect([...table.spreads.keys()].toSorted()).toEqual(["counted-endpoints", "counted-nodeport-endpoints"]);
    for (const name of table.spreads.keys()) expect(table.sets.get(name)!.counted).toBe(true);
    expect(table.sets.has("endpoints")).toBe(false);
  });

  it("counts endpoints of a Service with session affinity in counters of their own", () => {
    expect(table.counters.size).toBe(pods.length);
    for (const name of table.counters) {
      expect(name).toMatch(/^endpoint-.*shop\/sticky\/tcp\/__10\.180\.[01]\.5\/8080$/);
      expect(table.chains.get(name)!.rules).toContainEqual({
        statements: [{ kind: "count", counter: name }],
        comment: null,
      });
    }
  });

  it("counts in the maps of a large Service", () => {
    const settings: FamilySettings = { ...ipv4Settings, traffic: "endpoints" };
    const large = unfold(compile(null, routed([web], settings), 1));
    const [name] = [...large.spreads.keys()];
    expect(name).toMatch(/^counted-endpoints-.*shop\/web\/tcp\/http$/);
    expect(large.sets.get(name!)!.counted).toBe(true);
  });
});
