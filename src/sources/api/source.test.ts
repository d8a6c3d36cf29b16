// The API source against a real server on loopback: its requests, and that its Snapshot is the server's state.
import { expect, it, vi } from "vitest";
import { service, serviceCIDR, slice } from "../../../test/support/api-rig.ts";
import {
  agrees,
  catchesUp,
  clock,
  encoding,
  inBothEncodings,
  patiently,
  requests,
  rig,
  settle,
  started,
  status,
  synced,
  watching,
} from "../../../test/support/api-story.ts";

inBothEncodings(() => {
  it("02/21 22/15 sends exactly kube-proxy's selectors, the same on list and watch", async () => {
    await synced({ streaming: false });
    const selectors = (resource: string) => [
      ...new Set(
        requests(resource).map(({ query }) => `${query.get("labelSelector")} ${query.get("fieldSelector")}`),
      ),
    ];
    expect(selectors("services")).toEqual(["!service.kubernetes.io/service-proxy-name spec.clusterIP!=None"]);
    expect(selectors("endpointslices")).toEqual(["!service.kubernetes.io/headless null"]);
    expect(selectors("servicecidrs")).toEqual(["null null"]);
    expect(selectors("nodes")).toEqual(["null metadata.name=node-1"]);
    expect(requests("services")[0]!.url).toContain(
      "labelSelector=%21service.kubernetes.io%2Fservice-proxy-name",
    );
    expect(requests("services")[0]!.url).toContain("fieldSelector=spec.clusterIP%21%3DNone");
  });

  it("02/20 a Service leaves with the proxy-name label and comes back without it", async () => {
    await synced();
    const before = rig.seen();
    rig.server.put(service("web", "172.30.0.1", { "service.kubernetes.io/service-proxy-name": "other" }));
    await vi.waitFor(() => expect(rig.snapshots.at(-1)!.ipv4.ports.size).toBe(0), patiently);
    rig.server.put(service("web"));
    await vi.waitFor(() => expect(rig.seen()).toEqual(before), patiently);
  });

  it("22/11 an empty cluster is in sync, and no Snapshot comes before every resource is", async () => {
    await started({
      prepare: (server) => server.faults.arm({ resource: "endpointslices" }, { kind: "status", code: 500 }),
    });
    await vi.waitFor(
      () => expect(rig.source.status().resources.EndpointSlice!.lastError).not.toBeNull(),
      patiently,
    );
    await watching(3);
    rig.server.put(service("web"));
    await settle();
    expect(rig.snapshots).toEqual([]);
    expect(rig.source.status().synced).toBe(false);
    await catchesUp();
    expect(rig.snapshots).toHaveLength(1);
    expect(rig.source.status().synced).toBe(true);
  });

  it("does not wait for ServiceCIDRs that are not served or not allowed", async () => {
    await started({
      prepare(server) {
        server.put(service("web"));
        server.faults.arm({ resource: "servicecidrs" }, { kind: "status", code: 404 });
      },
    });
    await agrees();
    await watching(3);
    rig.server.put(serviceCIDR("late", "172.30.0.0/16"));
    clock.advance(60_000);
    await settle();
    expect(requests("servicecidrs")).toHaveLength(1);
    clock.advance(600_000);
    await agrees();
  });

  it("22/13 an object that cannot be read is reported, the others are used, and once fixed it counts", async () => {
    await synced();
    const odd = {
      ...service("odd", "172.30.0.4"),
      spec: { clusterIP: 7, ports: encoding === "json" ? "none" : 7 },
    };
    rig.server.put(odd);
    rig.server.put(service("after", "172.30.0.5"));
    await vi.waitFor(() => expect(rig.snapshots.at(-1)!.ipv4.ports.size).toBe(2), patiently);
    expect(rig.snapshots.at(-1)!.problems.map(({ object }) => object)).toContain("Service shop/odd");
    rig.server.put(service("odd", "172.30.0.4"));
    await vi.waitFor(() => expect(rig.snapshots.at(-1)!.ipv4.ports.size).toBe(3), patiently);
    expect(rig.snapshots.at(-1)!.problems).toEqual([]);
    expect(status().reconnects).toBe(0);
  });

  it("huge objects pass", async () => {
    await synced();
    const addresses = Array.from({ length: 5000 }, (_, i) => `10.1.${i >> 8}.${i & 255}`);
    rig.server.put(slice("huge", "web", addresses, { annotations: { ballast: "x".repeat(3 << 20) } }));
    await agrees();
    expect([...rig.snapshots.at(-1)!.ipv4.ports.values()][0]!.endpoints).toHaveLength(5001);
  });

  it("changes are merged while the consumer is busy", async () => {
    await synced({ busy: () => settle(30) });
    const before = rig.snapshots.length;
    for (let i = 0; i < 200; i++) rig.server.put(service("web", `172.30.5.${i}`));
    await agrees();
    expect(rig.snapshots.length - before).toBeLessThan(50);
  });
});
