// A Snapshot names the objects that led to it, with the version and time of their last event.
import { expect, it } from "vitest";
import { endpoint, node, service, slice } from "../../test/objects.ts";
import { Cluster } from "./cluster.ts";

it("names nothing in the first Snapshot, and then every object that changed", () => {
  const cluster = new Cluster("node-a");
  cluster.upsert("Service", service(), { version: "1", at: 10 });
  expect(cluster.take().causes).toEqual({ objects: [], more: 0 });
  cluster.upsert("Service", service({ clusterIP: "172.30.0.11" }), { version: "2", at: 20 });
  cluster.upsert("EndpointSlice", slice([endpoint("10.0.1.1")]), { version: "3", at: 30 });
  cluster.upsert("Node", node("node-b"), { version: "4", at: 35 });
  expect(cluster.take().causes).toMatchObject({
    objects: [
      cause("Service", "web", "modified", "2", 20),
      cause("EndpointSlice", "web-1", "added", "3", 30),
    ],
    more: 0,
  });
  cluster.remove("EndpointSlice", "shop", "web-1", { version: "5", at: 40 });
  expect(cluster.take().causes.objects).toEqual([cause("EndpointSlice", "web-1", "deleted", "5", 40)]);
});

it("counts only what differs from the last Snapshot, with its last event", () => {
  const cluster = new Cluster("node-a");
  cluster.upsert("Service", service(), { version: "1", at: 10 });
  cluster.take();
  cluster.upsert("Service", service({ clusterIP: "172.30.0.11" }), { version: "2", at: 20 });
  cluster.upsert("Service", service(), { version: "3", at: 30 });
  cluster.upsert("EndpointSlice", slice([endpoint("10.0.1.1")]), { version: "4", at: 40 });
  cluster.upsert("EndpointSlice", slice([endpoint("10.0.1.2")]), { version: "5", at: 50 });
  // An event without an effect is not a cause.
  cluster.upsert("EndpointSlice", slice([endpoint("10.0.1.2")]), { version: "6", at: 60 });
  expect(cluster.take().causes.objects).toEqual([cause("EndpointSlice", "web-1", "added", "5", 50)]);
  expect(cluster.take().causes.objects).toEqual([]);
});

it("of a list, the objects that changed and those that are missing; of many, the first hundred", () => {
  const cluster = new Cluster("node-a");
  const named = (count: number, port = 80) =>
    Array.from({ length: count }, (_, i) =>
      service({ ports: [{ name: "http", port }] }, { metadata: { name: `s-${i}` } }),
    );
  cluster.replace("Service", named(150));
  cluster.take();
  const received = (index: number | null) => ({ version: String(index), at: 7 });
  cluster.replace("Service", named(149), received);
  expect(cluster.take().causes.objects).toEqual([cause("Service", "s-149", "deleted", "null", 7)]);
  cluster.replace("Service", named(149, 81), received);
  const { objects, more } = cluster.take().causes;
  expect([objects.length, more, objects[3]]).toEqual([100, 49, cause("Service", "s-3", "modified", "3", 7)]);
});

it("has the names of the pods in slices that changed, before and after", () => {
  const cluster = new Cluster("node-a");
  const pod = (address: string, name: unknown, kind = "Pod") =>
    endpoint(address, { targetRef: { kind, name } });
  cluster.upsert("Service", service());
  cluster.upsert("EndpointSlice", slice([pod("10.0.1.1", "web-1"), pod("10.0.1.2", "web-2")]));
  cluster.take();
  const hostile = [pod("10.0.1.4", "\u001b[31m"), pod("10.0.1.5", 7), pod("10.0.1.6", "node-x", "Node")];
  const unnamed = [endpoint("10.0.1.7", { targetRef: "x" }), endpoint("10.0.1.8", { targetRef: null })];
  cluster.upsert(
    "EndpointSlice",
    slice([pod("10.0.1.2", "web-2"), pod("10.0.1.3", "web-3"), ...hostile, ...unnamed]),
  );
  const { causes, ipv4, problems } = cluster.take();
  expect([...causes.pods!()]).toEqual([
    ["10.0.1.2", "web-2"],
    ["10.0.1.3", "web-3"],
    ["10.0.1.1", "web-1"],
  ]);
  expect([ipv4.ports.get("shop/web/tcp/http")!.endpoints.length, problems]).toEqual([7, []]);
  // Another pod with the same address changes no ServicePort.
  cluster.upsert(
    "EndpointSlice",
    slice([pod("10.0.1.2", "web-9"), pod("10.0.1.3", "web-3"), ...hostile, ...unnamed]),
  );
  expect(cluster.take().ipv4.changed.size).toBe(0);
});

function cause(kind: string, name: string, event: string, resourceVersion: string, receivedAt: number) {
  return { kind, namespace: "shop", name, event, resourceVersion, receivedAt };
}
