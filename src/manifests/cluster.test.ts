// What a Cluster keeps of Services, Nodes and ServiceCIDRs, and what a Snapshot costs.
import { describe, expect, it } from "vitest";
import { endpoint, node, service, serviceCIDR, slice } from "../../test/objects.ts";
import { addresses, cluster, http, portKeys } from "../../test/support/cluster-objects.ts";
import { Cluster } from "./cluster.ts";
import { identify } from "./identity.ts";
import { readObject } from "./reading.ts";

describe("Services", () => {
  it("04/1 headless, ExternalName and address-less Services have no ports and nothing pending", () => {
    for (const spec of [
      { clusterIP: "None" },
      { type: "ExternalName" },
      { type: "ExternalName", clusterIP: "" },
    ]) {
      const followed = new Cluster("node-a");
      expect(followed.upsert("Service", service(spec))).toBe(false);
      expect(followed.take().ipv4.ports.size).toBe(0);
    }
    // An empty cluster IP is worth a Problem, because a file may well lack it; but it changes no port.
    const followed = new Cluster("node-a");
    followed.upsert("Service", service({ clusterIP: "", clusterIPs: ["172.30.0.10"] }));
    const { ipv4, problems } = followed.take();
    expect([ipv4.ports.size, ipv4.changed.size]).toEqual([0, 0]);
    expect(problems).toMatchObject([
      { kind: "ignored", object: "Service shop/web", field: "spec.clusterIP" },
    ]);
  });

  it("02/20 a Service of another proxy is ignored until its label is removed, and again when it is set", () => {
    const followed = cluster(["Service", service()]);
    followed.take();
    const labelled = service(
      {},
      { metadata: { labels: { "service.kubernetes.io/service-proxy-name": "" } } },
    );
    expect(followed.upsert("Service", labelled)).toBe(true);
    expect([...followed.take().ipv4.changed]).toEqual([http]);
    expect(followed.upsert("Service", service())).toBe(true);
    expect(portKeys(followed.take())).toEqual([http]);
  });

  it("04/10 a Service added and deleted before the Snapshot leaves nothing", () => {
    const followed = new Cluster("node-a");
    expect(followed.upsert("Service", service())).toBe(true);
    expect(followed.remove("Service", "shop", "web")).toBe(false);
    expect(followed.take().ipv4.changed.size).toBe(0);
  });

  it("04/11 what is pending for one Service is pending when another one is received unchanged", () => {
    const other = service({}, { metadata: { name: "other" } });
    const followed = cluster(["Service", other]);
    followed.take();
    expect(followed.upsert("Service", service())).toBe(true);
    expect(followed.upsert("Service", other)).toBe(true);
    expect([...followed.take().ipv4.changed]).toEqual([http]);
  });

  it("04/12 a renamed port is gone under its old name and there under the new one", () => {
    const followed = cluster(["Service", service({ ports: [{ name: "a", port: 80 }] })]);
    followed.take();
    followed.upsert("Service", service({ ports: [{ name: "b", port: 80 }] }));
    const snapshot = followed.take();
    expect(portKeys(snapshot)).toEqual(["shop/web/tcp/b"]);
    expect([...snapshot.ipv4.changed].sort()).toEqual(["shop/web/tcp/a", "shop/web/tcp/b"]);
  });

  it("04/13 an update of labels alone, and A→B→A, leave nothing pending", () => {
    const followed = cluster(["Service", service()]);
    const before = followed.take().ipv4.ports.get(http);
    expect(followed.upsert("Service", service({}, { metadata: { labels: { team: "x" } } }))).toBe(false);
    expect(followed.upsert("Service", service({ clusterIP: "172.30.0.99" }))).toBe(true);
    expect(followed.upsert("Service", service())).toBe(false);
    expect(followed.take().ipv4.ports.get(http)).toBe(before);
  });

  it("a Service that changes keeps the list of its Endpoints", () => {
    const followed = cluster(["Service", service()], ["EndpointSlice", slice([endpoint("10.0.1.1")])]);
    const before = followed.take().ipv4.ports.get(http)!;
    followed.upsert("Service", service({ sessionAffinity: "ClientIP" }));
    const after = followed.take().ipv4.ports.get(http)!;
    expect(after).not.toBe(before);
    expect(after.endpoints).toBe(before.endpoints);
  });
});

describe("the node, the ServiceCIDRs, relists", () => {
  it("keeps its own Node only, and the same object while it does not change", () => {
    const followed = cluster(["Node", node("node-b")], ["Node", node("node-a")]);
    const known = followed.take().node;
    expect(known?.name).toBe("node-a");
    expect(followed.upsert("Node", node("node-a", { metadata: { labels: { other: "1" } } }))).toBe(false);
    expect(followed.take().node).toBe(known);
    expect(followed.remove("Node", "", "node-a")).toBe(true);
    expect(followed.take().node).toBeNull();
  });

  it("keeps a ServiceCIDR while any object declares it", () => {
    const followed = cluster(
      ["ServiceCIDR", serviceCIDR("kubernetes", "172.30.0.0/16", "fd00:30::/112")],
      ["ServiceCIDR", serviceCIDR("again", "172.30.0.0/16", "172.29.0.0/16")],
    );
    const both = followed.take();
    expect(both.ipv4.serviceCIDRs).toEqual(["172.29.0.0/16", "172.30.0.0/16"]);
    expect(both.ipv6.serviceCIDRs).toEqual(["fd00:30::/112"]);
    followed.remove("ServiceCIDR", "", "kubernetes");
    const one = followed.take();
    expect(one.ipv4).toBe(both.ipv4);
    expect(one.ipv6.serviceCIDRs).toEqual([]);
  });

  it("a relist removes what it does not hold, Problems too", () => {
    const bad = service({ clusterIP: 7 }, { metadata: { name: "bad" } });
    const followed = cluster(["Service", service()], ["Service", bad], ["Service", 5]);
    expect(followed.take().problems).toHaveLength(2);
    const other = service({}, { metadata: { name: "other" } });
    expect(followed.replace("Service", [other])).toBe(true);
    const snapshot = followed.take();
    expect(portKeys(snapshot)).toEqual(["shop/other/tcp/http"]);
    expect(snapshot.problems).toEqual([]);
    expect(followed.replace("Service", [other])).toBe(false);
  });

  it("a Snapshot taken before stays what it was", () => {
    const followed = cluster(["Service", service()], ["EndpointSlice", slice([endpoint("10.0.1.1")])]);
    const before = followed.take();
    followed.remove("Service", "shop", "web");
    followed.take();
    expect(addresses(before)).toEqual(["10.0.1.1:8080"]);
  });
});

describe("values for metrics", () => {
  const at = (time: string) => ({
    metadata: { annotations: { "endpoints.kubernetes.io/last-change-trigger-time": time } },
  });

  it("counts events, and keeps the trigger times of changed slices", () => {
    const followed = cluster(
      ["Service", service()],
      ["EndpointSlice", slice([endpoint("10.0.1.1")], at("2026-01-02T03:04:05.678901234Z"))],
    );
    followed.upsert("EndpointSlice", slice([endpoint("10.0.1.1")], at("2026-01-02T03:04:09Z")));
    const triggered = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
    expect(followed.events).toEqual({
      services: 1,
      slices: { ipv4: 2, ipv6: 0 },
      servicesWaiting: 1,
      slicesWaiting: { ipv4: 1, ipv6: 0 },
    });
    expect(followed.take().triggeredAt).toEqual({ ipv4: [triggered], ipv6: [] });
    expect(followed.events).toMatchObject({ servicesWaiting: 0, slicesWaiting: { ipv4: 0, ipv6: 0 } });
    expect(followed.take().triggeredAt).toEqual({ ipv4: [], ipv6: [] });
  });

  it("drops the trigger times of a Service when one of its slices is deleted", () => {
    const followed = cluster(["EndpointSlice", slice([endpoint("10.0.1.1")], at("2026-01-02T03:04:05Z"))]);
    followed.remove("EndpointSlice", "shop", "web-1");
    expect(followed.take().triggeredAt.ipv4).toEqual([]);
  });

  it("keeps those of other Services, and later ones", () => {
    const followed = cluster(["EndpointSlice", slice([endpoint("10.0.1.1")], at("2026-01-02T03:04:05Z"))]);
    const other = at("2026-01-02T03:04:06Z").metadata;
    const named = { name: "api-1", labels: { "kubernetes.io/service-name": "api" } };
    followed.upsert("EndpointSlice", slice([endpoint("10.0.1.2")], { metadata: { ...other, ...named } }));
    followed.remove("EndpointSlice", "shop", "web-1");
    followed.upsert("EndpointSlice", slice([endpoint("10.0.1.1")], at("2026-01-02T03:04:07Z")));
    expect(followed.take().triggeredAt.ipv4).toEqual([
      Date.UTC(2026, 0, 2, 3, 4, 6),
      Date.UTC(2026, 0, 2, 3, 4, 7),
    ]);
    followed.upsert("EndpointSlice", slice([endpoint("10.0.1.9")], at("2026-01-02T03:04:08Z")));
    expect(followed.take().triggeredAt.ipv4).toEqual([Date.UTC(2026, 0, 2, 3, 4, 8)]);
  });
});

describe("cost", () => {
  it("one changed slice among 10,000 Services visits exactly one of them", () => {
    const followed = new Cluster("node-a");
    for (let i = 0; i < 10_000; i++) {
      const metadata = { name: `s${i}` };
      const clusterIP = `172.30.${i >> 8}.${i & 255}`;
      followed.upsert("Service", service({ clusterIP }, { metadata }));
      followed.upsert("EndpointSlice", sliceOf(i, 10));
    }
    const all = followed.take();
    expect([all.ipv4.ports.size, followed.visits]).toEqual([10_000, 10_000]);
    followed.upsert("EndpointSlice", sliceOf(4711, 9));
    const one = followed.take();
    expect(followed.visits).toBe(10_001);
    expect([...one.ipv4.changed]).toEqual(["shop/s4711/tcp/http"]);
    expect(one.ipv4.ports.get("shop/s4712/tcp/http")).toBe(all.ipv4.ports.get("shop/s4712/tcp/http"));
  });

  it("10,000 Services are joined in steps, each of them once, and a Snapshot joins only the rest", () => {
    const followed = new Cluster("node-a");
    for (let i = 0; i < 10_000; i++) {
      followed.upsert(
        "Service",
        service({ clusterIP: `172.30.${i >> 8}.${i & 255}` }, { metadata: { name: `s${i}` } }),
      );
      followed.upsert("EndpointSlice", sliceOf(i, 1));
    }
    const steps = [followed.visits];
    while (followed.joinSome()) steps.push(followed.visits);
    steps.push(followed.visits);
    expect(steps.length).toBeGreaterThan(10);
    const most = steps.map((visits, i) => visits - (steps[i - 1] ?? 0)).toSorted((a, b) => b - a)[0];
    expect(most).toBeLessThanOrEqual(500);
    const joined = followed.visits;
    expect(followed.take().ipv4.changed.size).toBe(10_000);
    expect(followed.visits).toBe(10_000);
    expect(followed.visits - joined).toBeLessThanOrEqual(500);
  });

  it("Services with many endpoints are joined in smaller steps", () => {
    const followed = new Cluster("node-a");
    const addresses = Array.from({ length: 1000 }, (_, i) => endpoint(`10.0.${i >> 8}.${i & 255}`));
    for (let i = 0; i < 60; i++) {
      followed.upsert("Service", service({ clusterIP: `172.30.1.${i}` }, { metadata: { name: `s${i}` } }));
      const metadata = { name: `s${i}-1`, labels: { "kubernetes.io/service-name": `s${i}` } };
      followed.upsert("EndpointSlice", slice(addresses, { metadata }));
    }
    for (let isMore = true, before = 0; isMore; before = followed.visits) {
      isMore = followed.joinSome();
      expect(followed.visits - before).toBeLessThanOrEqual(10);
    }
    expect(followed.take().ipv4.changed.size).toBe(60);
    expect(followed.visits).toBe(60);
  });

  it("large Services that change again during the steps are joined in as many steps, then taken", () => {
    const followed = new Cluster("node-a");
    const names = ["a", "b", "c"];
    const change = (name: string, index: number, count: number) => {
      const ready = Array.from({ length: count }, (_, i) => endpoint(`10.${index}.${i >> 8}.${i & 255}`));
      const metadata = { name: `${name}-${index}`, labels: { "kubernetes.io/service-name": name } };
      followed.upsert("EndpointSlice", slice(ready, { metadata }));
    };
    for (const name of names) {
      followed.upsert("Service", service({}, { metadata: { name } }));
      for (let index = 0; index < 11; index++) change(name, index, 1000);
    }
    let steps = 1;
    for (; steps < 10 && followed.joinSome(); steps++)
      for (const name of names) change(name, 0, 1000 - steps);
    expect(steps).toBe(3);
    expect(followed.take().ipv4.changed.size).toBe(3);
  });

  it("a list of 10,000 objects is taken over in steps", () => {
    const followed = new Cluster("node-a");
    const readings = Array.from({ length: 10_000 }, (_, i) => {
      const object = service({}, { metadata: { name: `s${i}` } });
      return readObject(identify("Service", object), object);
    });
    let before = 0;
    let most = 0;
    for (const _ of followed.replaceInSteps("Service", readings)) {
      most = Math.max(most, followed.events.services - before);
      before = followed.events.services;
    }
    expect(most).toBeLessThanOrEqual(500);
    expect(followed.events.services).toBe(10_000);
  });

  function sliceOf(i: number, count: number): unknown {
    const pods = Array.from({ length: count }, (_, j) => endpoint(`10.${j}.${i >> 8}.${i & 255}`));
    return slice(pods, { metadata: { name: `s${i}-x`, labels: { "kubernetes.io/service-name": `s${i}` } } });
  }
});
