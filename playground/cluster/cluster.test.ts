// Tests of admission and of EndpointSlices, without a network.
import { describe, expect, it } from "vitest";
import type { ApiObject, Draft } from "../api/objects/object.ts";
import { resourceOfKind } from "../api/objects/resources.ts";
import { admission } from "./admission.ts";
import { type PlacedPod, type Slice, slicesOf, withTriggerTime } from "./slices.ts";

const service = (name: string, spec: object): ApiObject => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, namespace: "shop", uid: name, resourceVersion: "1", creationTimestamp: "" },
  spec,
});

describe("admission", () => {
  const others = [service("web", { clusterIPs: ["172.30.1.1"], ports: [{ port: 80, nodePort: 30100 }] })];
  const admit = (spec: object, old: ApiObject | null = null): Draft =>
    admission({ services: () => others, hasNamespace: (name) => name === "shop" })(
      resourceOfKind("Service")!,
      { metadata: { name: "x", namespace: "shop" }, spec },
      old,
      true,
    );

  it("allocates addresses and sets defaults", () => {
    expect(admit({ ports: [{ port: 80 }] }).spec).toMatchObject({
      type: "ClusterIP",
      clusterIP: "172.30.1.2",
      clusterIPs: ["172.30.1.2"],
      ipFamilies: ["IPv4"],
      ports: [{ port: 80, protocol: "TCP", targetPort: 80 }],
    });
  });

  it("allocates both families and a free node port on request", () => {
    const spec = { type: "NodePort", ipFamilyPolicy: "PreferDualStack", ports: [{ port: 80 }] };
    expect(admit(spec).spec).toMatchObject({
      clusterIPs: ["172.30.1.2", "fd30::101"],
      externalTrafficPolicy: "Cluster",
      ports: [{ nodePort: 30101 }],
    });
  });

  it("keeps the addresses when an update omits them", () => {
    const old = service("x", { clusterIPs: ["172.30.0.77"], ipFamilies: ["IPv4"], ports: [{ port: 80 }] });
    expect(admit({ ports: [{ port: 81 }] }, old).spec).toMatchObject({ clusterIP: "172.30.0.77" });
  });

  it("refuses objects in unknown namespaces", () => {
    const make = admission({ services: () => [], hasNamespace: () => false });
    const draft = { metadata: { name: "x", namespace: "nowhere" }, spec: { ports: [{ port: 80 }] } };
    expect(() => make(resourceOfKind("Service")!, draft, null, true)).toThrow(
      'namespaces "nowhere" not found',
    );
    const made = make(resourceOfKind("Namespace")!, { metadata: { name: "mine" } }, null, true);
    expect(made.status).toEqual({ phase: "Active" });
  });

  it("refuses invalid ports", () => {
    expect(() => admit({ ports: [] })).toThrow(/spec.ports: Required/);
    expect(() => admit({ type: "NodePort", ports: [{ port: 80, nodePort: 30100 }] })).toThrow(
      /allocated by shop\/web/,
    );
  });
});

describe("EndpointSlices", () => {
  const pod = (name: string, zone: string, ready = true, terminating = false): PlacedPod => ({
    object: {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name,
        namespace: "shop",
        uid: name,
        resourceVersion: "1",
        creationTimestamp: "",
        labels: { app: "web" },
      },
      spec: { containers: [{ ports: [{ name: "http", containerPort: 8080 }] }] },
    },
    node: `node-${zone}`,
    zone,
    addresses: { ipv4: `10.0.${zone === "a" ? 1 : 2}.1`, ipv6: `fd00:${zone === "a" ? 1 : 2}::1` },
    ready,
    terminating,
  });
  const ports = [{ port: 80, targetPort: "http", protocol: "TCP" }];

  it("contain the selected pods of each family, with named ports resolved", () => {
    const web = service("web", { selector: { app: "web" }, ipFamilies: ["IPv4", "IPv6"], ports });
    const slices = slicesOf(web, [pod("web-1", "a"), pod("web-2", "b", false)]);
    expect(slices.map(({ metadata, addressType }) => [metadata?.name, addressType])).toEqual([
      ["web-ipv4", "IPv4"],
      ["web-ipv6", "IPv6"],
    ]);
    expect(slices[0]).toMatchObject({
      ports: [{ name: "", port: 8080, protocol: "TCP" }],
      endpoints: [
        { addresses: ["10.0.1.1"], nodeName: "node-a", conditions: { ready: true } },
        { addresses: ["10.0.2.1"], nodeName: "node-b", conditions: { ready: false } },
      ],
    });
  });

  it.each([
    ["PreferClose", { forZones: [{ name: "a" }] }],
    ["PreferSameNode", { forZones: [{ name: "a" }], forNodes: [{ name: "node-a" }] }],
  ])("carry hints for %s", (trafficDistribution, hints) => {
    const web = service("web", {
      selector: { app: "web" },
      ipFamilies: ["IPv4"],
      ports,
      trafficDistribution,
    });
    expect(slicesOf(web, [pod("web-1", "a")])[0]?.endpoints).toMatchObject([{ hints }]);
  });

  it("have the time of their last change, which stays while the endpoints do", () => {
    const pods = [pod("web-1", "a")];
    const web = service("web", { selector: { app: "web" }, ipFamilies: ["IPv4"], ports });
    const [slice] = slicesOf(web, pods);
    const timeOf = ({ metadata }: Pick<Slice, "metadata">) => Object.values(metadata?.annotations ?? {})[0];
    const first = withTriggerTime(slice!, undefined, new Date(1_000));
    expect(timeOf(first)).toBe("1970-01-01T00:00:01.000Z");
    const again = withTriggerTime(slice!, structuredClone(first) as unknown as ApiObject, new Date(5_000));
    expect(again).toEqual(first);
    const [changed] = slicesOf(web, [...pods, pod("web-2", "b")]);
    const later = withTriggerTime(changed!, first as unknown as ApiObject, new Date(5_000));
    expect(timeOf(later)).toBe("1970-01-01T00:00:05.000Z");
  });

  it("mark terminating endpoints and whether they serve", () => {
    const web = service("web", { selector: { app: "web" }, ipFamilies: ["IPv4"], ports });
    const [slice] = slicesOf(web, [pod("web-1", "a", true, true), pod("web-2", "b", false, true)]);
    expect(slice?.endpoints).toMatchObject([
      { conditions: { ready: false, serving: true, terminating: true } },
      { conditions: { ready: false, serving: false, terminating: true } },
    ]);
  });

  it("are not created without a selector or without matching pods", () => {
    expect(slicesOf(service("web", { ports }), [pod("web-1", "a")])).toEqual([]);
    expect(slicesOf(service("web", { selector: { app: "other" }, ports }), [pod("web-1", "a")])).toEqual([]);
  });
});
