// Answers about the past of one address: which Services a change concerns, and what the answer costs.
import { expect, it, vi } from "vitest";
import { endpoint, node, service, slice } from "../../test/objects.ts";
import { ipv4Settings, ipv6Settings } from "../../test/support/routed.ts";
import { Cluster } from "../manifests/cluster.ts";
import { finished } from "./change.ts";
import { HistoryLog } from "./log.ts";
import { recordOf } from "./record.ts";
import { entriesOf, type Here, type HistoryQuery } from "./report.ts";

const settings = { ipv4: ipv4Settings, ipv6: ipv6Settings };
const here: Here = { settings: (family) => settings[family] };

it("many Services at one address that change together are routed once", () => {
  const [few, many] = [40, 80].map(idsMadeFor);
  expect(many).toBeLessThan(2.2 * few!);
});

/** How many ids of Frontends an answer makes about a change of so many Services with the same external IP. */
function idsMadeFor(count: number): number {
  const cluster = new Cluster("node-a");
  const before = cluster.take();
  for (let i = 0; i < count; i++) {
    const spec = { clusterIP: `172.30.1.${i}`, externalIPs: ["198.51.100.1"] };
    cluster.upsert("Service", service(spec, { metadata: { name: `s${i}` } }));
  }
  const now = cluster.take();
  const log = new HistoryLog({ bytes: 1_000_000, ageMs: 1_000_000 });
  log.begin(before, 0);
  log.append(finished(recordOf(before, now, 0))!, { at: 1, steadyAt: 1 }, now);
  const join = vi.spyOn(Array.prototype, "join");
  const to = { kind: "address", address: "198.51.100.1", port: 80, protocol: "tcp" } as const;
  const [entry] = entriesOf(log, { since: 0, after: 0, limit: 10, packets: "also", to }, here);
  const made = join.mock.calls.length;
  join.mockRestore();
  expect(entry).toMatchObject({ kind: "change" });
  expect(entry!.changes).toHaveLength(count);
  for (const { frontends } of entry!.changes) expect(frontends).toHaveLength(1);
  return made;
}

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
  const entries = [...entriesOf(log, query, here)];
  expect(entries).toMatchObject([
    { kind: "change", seq: 1, changes: [{ service: "shop/web", kind: "changed" }] },
  ]);
});
