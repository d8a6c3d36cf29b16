import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryObject, arbitraryObjects, thisNode } from "../../test/generators.ts";
import { endpoint, service, slice } from "../../test/objects.ts";
import { Cluster } from "./cluster.ts";
import { kinds, slim } from "./objects.ts";

describe("slim", { timeout: 300_000 }, () => {
  it("drops unused fields", () => {
    const full = service(
      { selector: { app: "web" }, ports: [{ name: "http", port: 80, targetPort: 8080, appProtocol: "x" }] },
      { metadata: { managedFields: [{}], labels: { app: "web" }, uid: "1" }, status: { conditions: [] } },
    );
    expect(slim("Service", full)).toEqual({
      metadata: { namespace: "shop", name: "web", labels: {} },
      spec: { type: "ClusterIP", clusterIP: "172.30.0.10", ports: [{ name: "http", port: 80 }] },
      status: {},
    });
    const pod = endpoint("10.0.1.1", {
      targetRef: { kind: "Pod", name: "web-1", uid: "1" },
      zone: "z1",
      hostname: "h",
      nodeName: "node-a",
    });
    expect(slim("EndpointSlice", slice([pod]))).toEqual(
      slice([endpoint("10.0.1.1", { nodeName: "node-a", targetRef: { kind: "Pod", name: "web-1" } })]),
    );
  });

  it("changes nothing about what a cluster understands, Problems included", () => {
    const taste = { hostile: true };
    fc.assert(
      fc.property(arbitraryObjects(taste), (objects) => {
        const [raw, slimmed] = [new Cluster(thisNode), new Cluster(thisNode)];
        for (const kind of kinds) {
          raw.replace(kind, objects[kind]);
          slimmed.replace(
            kind,
            objects[kind].map((object) => slim(kind, object)),
          );
        }
        const [a, b] = [raw.take(), slimmed.take()];
        expect([...b.ipv4.ports.entries()]).toEqual([...a.ipv4.ports.entries()]);
        expect([...b.ipv6.ports.entries()]).toEqual([...a.ipv6.ports.entries()]);
        expect([b.node, b.problems, b.triggeredAt]).toEqual([a.node, a.problems, a.triggeredAt]);
      }),
      { numRuns: 300 },
    );
  });
});

describe("any JSON as any object", { timeout: 300_000 }, () => {
  const anything = fc.oneof(
    fc.jsonValue({ maxDepth: 4 }),
    ...kinds.map((kind) => arbitraryObject(kind, { hostile: true })),
    fc.record({
      metadata: fc.jsonValue(),
      spec: fc.jsonValue(),
      status: fc.jsonValue(),
      endpoints: fc.jsonValue(),
    }),
  );

  it("never throws and never affects other objects", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom(...kinds), anything), { maxLength: 10 }), (hostile) => {
        const cluster = new Cluster(thisNode);
        cluster.upsert("Service", service({}, { metadata: { namespace: "safe" } }));
        for (const [kind, object] of hostile) cluster.upsert(kind, object);
        cluster.upsert("EndpointSlice", slice([endpoint("10.0.1.1")], { metadata: { namespace: "safe" } }));
        const { ipv4, problems } = cluster.take();
        expect(ipv4.ports.get("safe/web/tcp/http")!.endpoints).toMatchObject([
          { address: "10.0.1.1", port: 8080 },
        ]);
        for (const { object, field, message } of problems) {
          expect(`${object} ${field} ${message}`).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
