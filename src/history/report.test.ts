// Answers about the past of one address: a change of this node's zone concerns Services that did not change themselves.
import { expect, it } from "vitest";
import { endpoint, node, service, slice } from "../../test/objects.ts";
import { ipv4Settings, ipv6Settings } from "../../test/support/routed.ts";
import { Cluster } from "../manifests/cluster.ts";
import { finished } from "./change.ts";
import { HistoryLog } from "./log.ts";
import { recordOf } from "./record.ts";
import { entriesOf, type HistoryQuery } from "./report.ts";

it("another zone of this node is a change of every Service whose endpoints have hints", () => {
  const inZone = (zone: string) =>
    node("node-a", { metadata: { labels: { "topology.kubernetes.io/zone": zone } } });
  const hinted = (address: string, zone: string) =>
    endpoint(address, { hints: { forZones: [{ name: zone }] } });
  const cluster = new Cluster("node-a");
  cluster.upsert("Service", service());
  cluster.upsert("EndpointSlice", slice([hinted("10.0.1.1", "a"), hinted("10.0.1.2", "b")]));
  cluster.upsert("Node", inZone("a"));
  const before = cluster.take();
  cluster.upsert("Node", inZone("b"));
  const now = cluster.take();
  const log = new HistoryLog({ bytes: 1_000_000, ageMs: 1_000_000 });
  log.begin(before, 0);
  log.append(finished(recordOf(before, now, 0))!, { at: 1, steadyAt: 1 }, now);
  const query: HistoryQuery = {
    since: 0,
    after: 0,
    limit: 10,
    packets: "only",
    to: { kind: "address", address: "172.30.0.10", port: 80, protocol: "tcp" },
  };
  const settings = { ipv4: ipv4Settings, ipv6: ipv6Settings };
  const entries = [...entriesOf(log, query, { settings: (family) => settings[family] })];
  expect(entries).toMatchObject([
    { kind: "change", seq: 1, changes: [{ service: "shop/web", kind: "changed" }] },
  ]);
});
