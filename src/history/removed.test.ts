// Which addresses and ports Services no longer have, by the changes of the past: every kind of Frontend, and the endpoints it led to.
import { expect, it } from "vitest";
import { endpoint, node, service, slice } from "../../test/objects.ts";
import { Cluster } from "../manifests/cluster.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { finished } from "./change.ts";
import { HistoryLog } from "./log.ts";
import { recordOf } from "./record.ts";
import { removedFrontends } from "./removed.ts";

const nodePort = { type: "NodePort", ports: [{ name: "http", protocol: "TCP", port: 80, nodePort: 30080 }] };
const both = ["10.0.1.2:8080", "10.0.1.1:8080"];

it("has the Frontends of deleted Services and of removed addresses, with the endpoints of their time", () => {
  const { cluster, take, removed } = recorded();
  cluster.upsert("Service", service({ ...nodePort, externalIPs: ["198.51.100.7"] }));
  cluster.upsert("EndpointSlice", slice([endpoint("10.0.1.1")]));
  take();
  cluster.upsert("EndpointSlice", slice([endpoint("10.0.1.2")]));
  take();
  expect(removed()).toEqual({});
  cluster.upsert("Service", service(nodePort));
  take();
  const gone = { label: "shop/web:http", endpoints: both };
  expect(removed()).toEqual({ "198.51.100.7/tcp/80": gone });
  cluster.remove("Service", "shop", "web");
  take();
  expect(removed()).toEqual({
    "172.30.0.10/tcp/80": gone,
    "198.51.100.7/tcp/80": gone,
    "node/tcp/30080": gone,
  });
});

it("names the Service that had a Frontend last, and not the endpoints of those before", () => {
  const { cluster, take, removed } = recorded();
  cluster.upsert("Service", service());
  cluster.upsert("EndpointSlice", slice([endpoint("10.0.1.1")]));
  take();
  cluster.remove("Service", "shop", "web");
  take();
  const other = service({}, { metadata: { name: "other" } });
  cluster.upsert("Service", other);
  take();
  cluster.remove("Service", "shop", "other");
  take();
  expect(removed()).toEqual({ "172.30.0.10/tcp/80": { label: "shop/other:http", endpoints: [] } });
});

function recorded() {
  const cluster = new Cluster("node-a");
  cluster.upsert("Node", node("node-a"));
  const log = new HistoryLog({ bytes: 1_000_000, ageMs: 1_000_000 });
  let last: Snapshot = cluster.take();
  log.begin(last, 0);
  let now = 0;
  return {
    cluster,
    take: () => {
      const next = cluster.take();
      const record = finished(recordOf(last, next, 0));
      if (record !== null) log.append(record, { at: ++now, steadyAt: now }, next);
      last = next;
    },
    removed: () => [...removedFrontends(log)].find((each) => each?.family === "ipv4")!.frontends,
  };
}
