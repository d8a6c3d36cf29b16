import { describe, expect, it } from "vitest";
import { endpoint, slice } from "../../test/objects.ts";
import type { Endpoint } from "../model/snapshot.ts";
import { parseEndpointSlice } from "./endpointslice.ts";
import { identify } from "./identity.ts";

function parse(object: unknown) {
  const { slice: parsed, triggeredAt } = parseEndpointSlice(identify("EndpointSlice", object), object);
  return { ...parsed, triggeredAt };
}

function only(fields: Record<string, unknown>): Endpoint {
  const [first] = parse(slice([{ addresses: ["10.0.1.1"], ...fields }])).value!.endpoints;
  return first!;
}

function fieldsOf(object: unknown): string[] {
  return parse(object).problems.map(({ kind, field }) => `${kind} ${field}`);
}

describe("ports", () => {
  it("04/18 a port without number, or number 0, is ignored; the others are used", () => {
    const ports = [{ name: "a" }, { name: "b", port: null }, { name: "c", port: 0 }, { name: "d", port: 80 }];
    const object = slice([endpoint("10.0.1.1")], { ports });
    expect(parse(object).value!.ports).toEqual([{ portName: "d", protocol: "tcp", port: 80 }]);
    expect(fieldsOf(object)).toEqual([0, 1, 2].map((i) => `invalid-port ports[${i}].port`));
  });

  it("04/18 a port without name has the empty name that the API server would have given it", () => {
    const ports = [{ port: 80 }, { name: null, port: 81 }, { name: "", port: 82 }];
    expect(parse(slice([], { ports })).value!.ports.map(({ portName }) => portName)).toEqual(["", "", ""]);
  });

  it("are one list for slices with the same few ports; a long list is forgotten with its slice", () => {
    const portsOf = (count: number) =>
      parse(slice([], { ports: Array.from({ length: count }, (_, i) => ({ name: `p${i}`, port: 80 + i })) }))
        .value!.ports;
    expect(portsOf(8)).toBe(portsOf(8));
    expect(portsOf(9)).toEqual(portsOf(9));
    expect(portsOf(9)).not.toBe(portsOf(9));
  });

  it("unknown protocols and illegal names are dropped", () => {
    const ports = [
      { name: "a", protocol: "ICMP", port: 80 },
      { name: "a b", port: 80 },
    ];
    expect(fieldsOf(slice([], { ports }))).toEqual([
      "invalid-protocol ports[0].protocol",
      "invalid-name ports[1].name",
    ]);
  });
});

describe("endpoints", () => {
  it("04/19 absent conditions mean ready, serving and not terminating, each by itself", () => {
    const conditions = (given: unknown) => {
      const { state, serving } = only({ conditions: given });
      return `${state} ${serving}`;
    };
    expect(conditions(undefined)).toBe("ready true");
    expect(conditions({})).toBe("ready true");
    expect(conditions({ ready: null, serving: null, terminating: null })).toBe("ready true");
    expect(conditions({ ready: false })).toBe("unready true");
    expect(conditions({ ready: false, serving: false })).toBe("unready false");
    expect(conditions({ ready: false, terminating: true })).toBe("draining true");
    expect(conditions({ ready: false, serving: false, terminating: true })).toBe("unready false");
    expect(conditions({ ready: true, serving: false, terminating: true })).toBe("ready false");
  });

  it("04/20 the node's name is kept exactly; an endpoint with this node's name is local", () => {
    expect(only({ nodeName: "node-a" }).nodeName).toBe("node-a");
    expect(only({ nodeName: "NODE-A" }).nodeName).toBe("NODE-A");
    expect(only({ nodeName: null }).nodeName).toBe("");
    expect(only({}).nodeName).toBe("");
  });

  it("04/21 only the first address counts", () => {
    const { endpoints } = parse(slice([{ addresses: ["10.0.1.1", "10.0.1.2"] }])).value!;
    expect(endpoints.map(({ address }) => address)).toEqual(["10.0.1.1"]);
  });

  it("hints are sets; equal ones are one list for all endpoints", () => {
    const hints = {
      forZones: [{ name: "z2" }, { name: "z1" }, { name: "z2" }],
      forNodes: [{ name: "node-a" }],
    };
    const [one, two] = [only({ hints }), only({ hints })];
    expect(one).toMatchObject({ zoneHints: ["z1", "z2"], nodeHints: ["node-a"] });
    expect(two.zoneHints).toBe(one.zoneHints);
    expect(only({ hints: { forZones: [] } }).zoneHints).toEqual([]);
    expect(only({ hints: { forZones: [{ name: "a b" }, null] } }).zoneHints).toEqual([]);
    expect(only({ hints: { forZones: [{ name: "a" }, { name: "b" }] } }).zoneHints).toEqual(["a", "b"]);
    expect(only({ hints: { forZones: [{ name: "a b" }] } }).zoneHints).toEqual([]);
  });

  it("an invalid address, or one of the other family, drops the endpoint with a Problem", () => {
    const addresses = ["10.0.1.1", "x", "fd00::1", "", "::ffff:10.0.1.2", "010.0.1.3"];
    const object = slice(addresses.map((address) => endpoint(address)).concat({ addresses: [] }, {}));
    const { endpoints } = parse(object).value!;
    expect(endpoints.map(({ address }) => address)).toEqual(["10.0.1.1", "10.0.1.2", "10.0.1.3"]);
    expect(fieldsOf(object)).toEqual([
      "invalid-address endpoints[1].addresses[0]",
      "invalid-address endpoints[2].addresses[0]",
      "invalid-address endpoints[3].addresses[0]",
      "missing-field endpoints[6].addresses",
      "missing-field endpoints[7].addresses",
    ]);
  });

  it("an IPv4-mapped address in an IPv6 slice is of the other family", () => {
    const object = slice([endpoint("::ffff:10.0.1.1"), endpoint("fd00::1")], { addressType: "IPv6" });
    expect(parse(object).value!.endpoints.map(({ address }) => address)).toEqual(["fd00::1"]);
  });

  it("loopback, link-local and multicast addresses are accepted", () => {
    const object = slice(["127.0.0.1", "169.254.1.1", "224.0.0.1"].map((address) => endpoint(address)));
    expect(parse(object).value!.endpoints).toHaveLength(3);
    expect(parse(object).problems).toEqual([]);
  });

  it("five thousand of them are just many", () => {
    const many = Array.from({ length: 5000 }, (_, i) => endpoint(`10.${i >> 8}.${i & 255}.1`));
    expect(parse(slice(many)).value!.endpoints).toHaveLength(5000);
  });
});

describe("the slice", () => {
  it("belongs to the Service its label names, in its own namespace", () => {
    expect(parse(slice([])).value!.owner).toBe("shop/web");
    const illegal = slice([], { metadata: { labels: { "kubernetes.io/service-name": "a/b" } } });
    expect(parse(illegal).value).toBeNull();
    expect(fieldsOf(illegal)).toEqual(['invalid-name metadata.labels["kubernetes.io/service-name"]']);
  });

  it("of an unknown address type is ignored, for any name of the type", () => {
    for (const addressType of ["FQDN", "ipv4", "", "__proto__", "constructor"]) {
      expect(parse(slice([endpoint("10.0.1.1")], { addressType }))).toMatchObject({
        value: null,
        problems: [],
      });
    }
  });

  it("is refused whole when a field has the wrong type", () => {
    for (const [object, field] of [
      [slice([{ addresses: "10.0.1.1" }]), "endpoints[0].addresses"],
      [slice([{ addresses: [7] }]), "endpoints[0].addresses[0]"],
      [slice([endpoint("10.0.1.1", { conditions: { ready: "yes" } })]), "endpoints[0].conditions.ready"],
      [slice([endpoint("10.0.1.1", { hints: { forZones: [7] } })]), "endpoints[0].hints.forZones[0]"],
      [
        slice([endpoint("10.0.1.1", { hints: { forZones: [{ name: 7 }] } })]),
        "endpoints[0].hints.forZones[0].name",
      ],
      [slice([7]), "endpoints[0]"],
      [slice([], { ports: [{ port: true }] }), "ports[0].port"],
      [slice([], { addressType: 4 }), "addressType"],
    ] as const) {
      expect(parse(object).value).toBeNull();
      expect(fieldsOf(object)).toEqual([`wrong-type ${field}`]);
    }
  });

  it("contains when its change was triggered", () => {
    const at = (time: unknown) =>
      slice([], { metadata: { annotations: { "endpoints.kubernetes.io/last-change-trigger-time": time } } });
    expect(parse(at("2026-01-02T03:04:05.123456789Z")).triggeredAt).toBe(Date.UTC(2026, 0, 2, 3, 4, 5, 123));
    expect(parse(at("2026-01-02T03:04:05+01:00")).triggeredAt).toBe(Date.UTC(2026, 0, 2, 2, 4, 5));
    expect(parse(slice([])).triggeredAt).toBeNull();
    for (const wrong of ["yesterday", "2026-13-02T03:04:05Z", "1"]) {
      expect(parse(at(wrong)).triggeredAt).toBeNull();
      expect(parse(at(wrong)).value).not.toBeNull();
      expect(fieldsOf(at(wrong))).toHaveLength(1);
    }
  });
});
