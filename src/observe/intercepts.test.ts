// What is reported of Services that take an address of this node or of the API server.
import { expect, it } from "vitest";
import { Cluster } from "../manifests/cluster.ts";
import type { Problem } from "../model/problem.ts";
import { keepIntercepts } from "./intercepts.ts";

const node = {
  metadata: { name: "node-a" },
  status: {
    addresses: [
      { type: "InternalIP", address: "192.168.0.1" },
      { type: "ExternalIP", address: "203.0.113.1" },
    ],
  },
};

const service = (name: string, spec: object) => ({
  metadata: { name, namespace: "shop" },
  spec: { type: "ClusterIP", clusterIP: "172.30.0.10", ports: [{ name: "http", port: 80 }], ...spec },
});

it("security/14: reports what was found when it changes, and counts it for the metric and for turnout status", () => {
  const reports: (readonly Problem[])[] = [];
  const kept = keepIntercepts({ families: ["ipv4"], externalIPsAllowed: true }, (_, problems) =>
    reports.push(problems),
  );
  const cluster = new Cluster("node-a");
  cluster.replace("Node", [node]);
  cluster.upsert("Service", service("web", {}));
  kept.arrived(cluster.take());
  expect(reports).toEqual([]);
  cluster.upsert("Service", service("evil", { externalIPs: ["203.0.113.1"] }));
  kept.arrived(cluster.take());
  expect(reports).toHaveLength(1);
  expect(reports[0]).toEqual([expect.objectContaining({ kind: "intercepts", object: "Service shop/evil" })]);
  expect(kept.samples()).toEqual([
    { labels: { ip_family: "IPv4", kind: "external-ip", of: "node" }, value: 1 },
  ]);
  expect(kept.counts()["external-ip node"]).toBe(1);
  cluster.upsert("Service", service("web", { sessionAffinity: "ClientIP" }));
  kept.arrived(cluster.take());
  expect(reports).toHaveLength(1);
  kept.serverAt({ address: "203.0.113.1", port: 6443 });
  kept.arrived(cluster.take());
  expect(kept.counts()).toMatchObject({ "external-ip node": 0, "external-ip api-server": 1 });
  cluster.remove("Service", "shop", "evil");
  kept.arrived(cluster.take());
  expect(reports.at(-1)).toEqual([]);
  expect(kept.samples()).toEqual([]);
});
