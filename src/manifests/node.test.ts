import { describe, expect, it } from "vitest";
import { node } from "../../test/objects.ts";
import { identify } from "./identity.ts";
import { parseNode } from "./node.ts";

function parse(rest: Parameters<typeof node>[1]) {
  const object = node("node-a", rest);
  return parseNode(identify("Node", object), object);
}

describe("Node", () => {
  it("02/9 its addresses: internal before external, the first and the first of the other family", () => {
    const addresses = (...given: [string, string][]) =>
      parse({ status: { addresses: given.map(([type, address]) => ({ type, address })) } }).value!.addresses;
    expect(
      addresses(
        ["Hostname", "h"],
        ["ExternalIP", "1.1.1.1"],
        ["InternalIP", "10.0.0.1"],
        ["InternalIP", "fd00::1"],
      ),
    ).toEqual(["10.0.0.1", "fd00::1"]);
    expect(addresses(["ExternalIP", "1.1.1.1"], ["InternalIP", "fd00::1"])).toEqual(["fd00::1", "1.1.1.1"]);
    expect(addresses(["InternalIP", "10.0.0.2"], ["InternalIP", "10.0.0.1"])).toEqual(["10.0.0.2"]);
    expect(addresses(["Hostname", "h"])).toEqual([]);
    expect(addresses(["InternalIP", "x"], ["InternalIP", "010.0.0.1"])).toEqual(["10.0.0.1"]);
  });

  it("its pod networks, in their order, and its zone", () => {
    const parsed = parse({
      metadata: { labels: { "topology.kubernetes.io/zone": "z1" } },
      spec: { podCIDRs: ["fd00:10::/64", "10.0.1.7/24", "x"] },
    });
    expect(parsed.value).toMatchObject({ zone: "z1", podCIDRs: ["fd00:10::/64", "10.0.1.0/24"] });
    expect(parsed.problems).toMatchObject([{ kind: "invalid-range", field: "spec.podCIDRs[2]" }]);
    expect(parse({}).value).toMatchObject({ name: "node-a", zone: "", podCIDRs: [] });
  });

  it("accepts load-balancer traffic until it is being deleted", () => {
    const eligible = (rest: Parameters<typeof node>[1]) => parse(rest).value!.eligibleForLoadBalancers;
    expect(eligible({})).toBe(true);
    expect(eligible({ spec: { unschedulable: true, taints: [{ key: "other" }] } })).toBe(true);
    expect(eligible({ metadata: { deletionTimestamp: "2026-01-02T03:04:05Z" } })).toBe(false);
    expect(
      eligible({ spec: { taints: [{ key: "other" }, { key: "ToBeDeletedByClusterAutoscaler" }] } }),
    ).toBe(false);
  });
});
