// What changed, in words: each state of an endpoint, each field, and what it means for this node.
import { describe, expect, it } from "vitest";
import { endpoint, node, service, serviceCIDR, slice } from "../../test/objects.ts";
import { Cluster } from "../manifests/cluster.ts";
import type { Kind } from "../manifests/objects.ts";
import { finished } from "./change.ts";
import { Past } from "./past.ts";
import { recordOf } from "./record.ts";
import { otherWords, portWords } from "./words.ts";

const terminating = { conditions: { ready: false, serving: true, terminating: true } };
const unready = { conditions: { ready: false, serving: true } };
const on = (nodeName: string, more = {}) => endpoint("10.0.1.1", { nodeName, ...more });
const hinted = (address: string, zone: string) =>
  endpoint(address, { hints: { forZones: [{ name: zone }] } });
const inZone = (zone: string) =>
  node("node-a", { metadata: { labels: { "topology.kubernetes.io/zone": zone } } });

type Objects = readonly (readonly [Kind, unknown])[];

/** Of the Service shop/web, seen from node-a, and of the rest. */
function wordsOf(before: Objects, after: Objects): string[] {
  const cluster = new Cluster("node-a");
  for (const [kind, object] of before) cluster.upsert(kind, object);
  const old = cluster.take();
  for (const [kind, object] of after) cluster.upsert(kind, object);
  const now = cluster.take();
  const recorded = finished(recordOf(old, now, 0))!;
  const step = new Past(now).undo(recorded.undo);
  const at = (zone: string) => ({ nodeName: "node-a", zone });
  const places = { before: at(step.node.before?.zone ?? ""), after: at(step.node.after?.zone ?? "") };
  const pods = new Map(Object.entries(recorded.pods ?? {}));
  return [...step.ports.flatMap((port) => portWords(port, pods, places)), ...otherWords(step)];
}

const web = (spec = {}) => ["Service", service(spec)] as const;
const slices = (...endpoints: unknown[]) => ["EndpointSlice", slice(endpoints)] as const;
const other = endpoint("10.0.1.9");

describe("endpoints", () => {
  it.each([
    [
      "terminates",
      on("node-a"),
      on("node-a", terminating),
      "lost endpoint 10.0.1.1:8080 (node-a): terminating",
    ],
    [
      "fails its probe",
      on("node-a"),
      on("node-a", unready),
      "lost endpoint 10.0.1.1:8080 (node-a): not ready",
    ],
    ["recovers", on("node-a", unready), on("node-a"), "gained endpoint 10.0.1.1:8080 (node-a): ready"],
    ["moves", on("node-a"), on("node-b"), "moved endpoint 10.0.1.1:8080 (node-b): from node-a"],
    ["appears", null, endpoint("10.0.1.1"), "gained endpoint 10.0.1.1:8080"],
    ["appears, not ready", null, on("", unready), "gained endpoint 10.0.1.1:8080: not ready"],
    ["is removed", on("node-a"), null, "lost endpoint 10.0.1.1:8080 (node-a): removed"],
    [
      "is removed after terminating",
      on("node-a", terminating),
      null,
      "lost endpoint 10.0.1.1:8080 (node-a): removed, it was terminating",
    ],
    [
      "of a pod",
      on("node-a", { targetRef: { kind: "Pod", name: "web-1" } }),
      null,
      "lost endpoint 10.0.1.1:8080 (pod web-1, node-a): removed",
    ],
  ])("one that %s", (_, before, after, words) => {
    const list = (one: unknown) => slices(...(one === null ? [other] : [one, other]));
    expect(wordsOf([web(), list(before)], [list(after)])).toEqual([words]);
  });

  it("the last one that is lost, and the first one after that", () => {
    expect(wordsOf([web(), slices(on("node-a"))], [slices()]).at(-1)).toBe(
      "has no usable endpoint: connections are rejected",
    );
    expect(wordsOf([web(), slices()], [slices(on("node-a"))]).at(-1)).toBe("has usable endpoints again");
  });

  it("of many, the first twenty", () => {
    const many = Array.from({ length: 50 }, (_, i) => endpoint(`10.0.2.${i}`));
    const words = wordsOf([web(), slices(other)], [slices(other, ...many)]);
    expect([words.length, words.at(-1)]).toEqual([21, "and 30 more changes of endpoints"]);
  });
});

describe("zones and hints", () => {
  const list = [hinted("10.0.1.1", "a"), hinted("10.0.2.1", "b")];

  it("hints that appear", () => {
    const plain = [endpoint("10.0.1.1"), endpoint("10.0.2.1")];
    expect(wordsOf([web(), slices(...plain), ["Node", inZone("a")]], [slices(...list)])).toEqual([
      "topology hints of 2 endpoints changed",
      "node-a uses 1 of 2 endpoints (ready endpoints hinted for this node's zone)",
    ]);
  });

  it("another zone of this node changes what a Service does, although the Service is the same", () => {
    expect(wordsOf([web(), slices(...list), ["Node", inZone("a")]], [["Node", inZone("b")]])).toEqual([
      "Node node-a: zone a → b",
    ]);
    const cluster = new Cluster("node-a");
    for (const [kind, object] of [web(), slices(...list)]) cluster.upsert(kind, object);
    const port = cluster.take().ipv4.ports.get("shop/web/tcp/http")!;
    const step = { family: "ipv4", key: port.key, before: port, after: port } as const;
    const places = { before: { nodeName: "node-a", zone: "a" }, after: { nodeName: "node-a", zone: "b" } };
    expect(portWords(step, new Map(), places)).toEqual([
      "node-a uses 1 of 2 endpoints (ready endpoints hinted for this node's zone)",
    ]);
  });
});

describe("fields", () => {
  it.each([
    [{ clusterIP: "172.30.0.11" }, ["cluster IP 172.30.0.10:80 → 172.30.0.11:80"]],
    [{ externalIPs: ["203.0.113.1"] }, ["external IPs none → 203.0.113.1"]],
    [{ sessionAffinity: "ClientIP" }, ["session affinity none → ClientIP, 10800 s"]],
    [
      { internalTrafficPolicy: "Local" },
      [
        "internalTrafficPolicy Cluster → Local",
        "node-a uses 0 of 1 endpoint for policy Local (no usable endpoint on this node)",
      ],
    ],
    [{ type: "NodePort", ports: [{ name: "http", port: 80, nodePort: 30080 }] }, ["node port none → 30080"]],
  ])("%j", (spec, words) => {
    expect(wordsOf([web(), slices(endpoint("10.0.1.1", { nodeName: "node-b" }))], [web(spec)])).toEqual(
      words,
    );
  });

  it("this Node and the ServiceCIDRs", () => {
    expect(wordsOf([], [["Node", inZone("a")]])).toEqual(["Node node-a added"]);
    expect(wordsOf([], [["ServiceCIDR", serviceCIDR("x", "172.30.0.0/16", "fd30::/108")]])).toEqual([
      "ServiceCIDRs (ipv4) none → 172.30.0.0/16",
      "ServiceCIDRs (ipv6) none → fd30::/108",
    ]);
  });
});
