// What Snapshots and Syncs do to metrics and health, from Kubernetes objects to series.

import { describe, expect, it } from "vitest";
import { someBuild as build } from "../../test/support/build-facts.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { parsePrometheus } from "../../test/support/prometheus.ts";
import type { ModeName } from "../config/modes.ts";
import { Cluster } from "../manifests/cluster.ts";
import type { Family } from "../model/address.ts";
import { modes } from "../modes/index.ts";
import type { SyncRecord } from "../sync/record.ts";
import { reportEvents } from "./metrics/events.ts";
import { openMetrics } from "./metrics/metrics.ts";
import { openHealth } from "./proxy-health.ts";
import { openSyncObserver } from "./syncs.ts";

function setUp(mode: ModeName = "nftables", served: readonly Family[] = ["ipv4", "ipv6"]) {
  const clock = manualClock();
  const { metrics, print } = openMetrics(
    { mode, gates: new Set(), kubernetes: "1.37", showHidden: false },
    build,
    [],
    clock,
  );
  const health = openHealth({ timeoutMs: () => 60_000, answers: "honest", silentMs: 900_000 }, clock);
  const observer = openSyncObserver(
    { countsLocal: modes[mode].behavior.countsLocal, families: served, nodeName: "node-a" },
    metrics,
    health,
    clock,
  );
  const cluster = new Cluster("node-a");
  reportEvents(metrics, served, () => cluster.events);
  let snapshot = cluster.take();
  return {
    clock,
    health,
    observer,
    cluster,
    arrive: () => {
      snapshot = cluster.take();
      observer.arrived(snapshot);
      for (const family of served) observer.taken(family, snapshot);
    },
    sync: (given: Partial<SyncRecord> = {}) =>
      observer.synced({ ...ok, startedAt: clock.wall() - 30, finishedAt: clock.wall(), ...given }, snapshot),
    /** Sum of the series of a metric (of a histogram: its count) that carry all the given labels. */
    value: async (name: string, labels: Record<string, string> = {}): Promise<number | undefined> => {
      const found = parsePrometheus(await print())
        .get(name)
        ?.series.filter((one) => !/_(bucket|sum)$/.test(one.name))
        .filter((one) => Object.entries(labels).every(([key, value]) => one.labels[key] === value));
      return found === undefined || found.length === 0
        ? undefined
        : found.reduce((sum, one) => sum + one.value, 0);
    },
  };
}

const ok: SyncRecord = {
  family: "ipv4",
  startedAt: 0,
  finishedAt: 0,
  trigger: "change",
  servicePorts: 1,
  endpoints: 1,
  operations: 3,
  bytes: 200,
  changedPorts: 1,
  readBack: false,
  outcome: { kind: "ok", refused: [] },
};
const failed: SyncRecord["outcome"] = { kind: "failed", message: "nft exited with 1", ofRules: true };

function service(name = "web", more: object = {}, ports: object[] = [{ port: 80 }]) {
  const families = { ipFamilies: ["IPv4"], clusterIP: "172.30.0.1", clusterIPs: ["172.30.0.1"] };
  return { metadata: { namespace: "shop", name }, spec: { type: "ClusterIP", ...families, ports, ...more } };
}

function slice(
  name: string,
  addresses: string[],
  triggered: number | null,
  type = "IPv4",
  ports: object[] = [{ port: 80 }],
) {
  const key = "endpoints.kubernetes.io/last-change-trigger-time";
  const annotations = triggered === null ? {} : { [key]: new Date(triggered).toISOString() };
  return {
    metadata: { namespace: "shop", name, annotations, labels: { "kubernetes.io/service-name": "web" } },
    addressType: type,
    endpoints: addresses.map((address) => ({
      addresses: [address],
      conditions: { ready: true },
      nodeName: "node-b",
    })),
    ports: ports.map((port) => ({ protocol: "TCP", name: "", ...port })),
  };
}

const changes = "kubeproxy_sync_proxy_rules_";
const latency = "kubeproxy_network_programming_duration_seconds";

describe("arrivals", () => {
  it("03/31 a Service event counts once for each family, a slice event once", async () => {
    const { cluster, arrive, value } = setUp();
    cluster.upsert("Service", service());
    expect(await value(`${changes}service_changes_total`)).toBe(2);
    expect(await value(`${changes}endpoint_changes_total`)).toBe(0);
    cluster.upsert("EndpointSlice", slice("web-1", ["10.0.1.1"], null));
    expect(await value(`${changes}endpoint_changes_total`)).toBe(1);
    arrive();
    expect(await value(`${changes}endpoint_changes_total`)).toBe(1);
  });

  it("03/32 an unchanged slice counts as an event, not as pending; a Sync that begins leaves nothing pending", async () => {
    const { cluster, arrive, value } = setUp();
    cluster.upsert("EndpointSlice", slice("web-1", ["10.0.1.1"], null));
    expect(await value(`${changes}endpoint_changes_pending`)).toBe(1);
    cluster.upsert("EndpointSlice", slice("web-1", ["10.0.1.1"], null));
    expect(await value(`${changes}endpoint_changes_total`)).toBe(2);
    expect(await value(`${changes}endpoint_changes_pending`)).toBe(1);
    arrive();
    expect(await value(`${changes}endpoint_changes_pending`)).toBe(0);
  });

  it("slices of a family that is not served do not count", async () => {
    const { cluster, value } = setUp("nftables", ["ipv4"]);
    cluster.upsert("EndpointSlice", slice("web-1", ["10.0.1.1"], null));
    cluster.upsert("EndpointSlice", slice("web-2", ["fd00::1"], null, "IPv6"));
    expect(await value(`${changes}endpoint_changes_total`)).toBe(1);
    expect(await value(`${changes}endpoint_changes_pending`)).toBe(1);
  });

  it("Services that differ are pending, and no longer when they are as before", async () => {
    const { cluster, arrive, value } = setUp();
    for (const name of ["web", "front"]) cluster.upsert("Service", service(name));
    cluster.upsert("Service", service("web", {}, [{ port: 81 }]));
    expect(await value(`${changes}service_changes_pending`)).toBe(2);
    arrive();
    cluster.upsert("Service", service("web"));
    expect(await value(`${changes}service_changes_pending`)).toBe(1);
    cluster.upsert("Service", service("web", {}, [{ port: 81 }]));
    expect(await value(`${changes}service_changes_pending`)).toBe(0);
    expect(await value(`${changes}service_changes_total`)).toBe(10);
  });

  it("03/9 the Node decides who may send load-balancer traffic here", () => {
    const { cluster, arrive, health } = setUp();
    const node = (metadata: object, spec: object = {}) => {
      cluster.upsert("Node", { metadata: { name: "node-a", ...metadata }, spec });
      arrive();
      return health.nodeEligible();
    };
    expect(health.nodeEligible()).toBe(false);
    expect(node({})).toBe(true);
    expect(node({}, { taints: [{ key: "node.kubernetes.io/unreachable", effect: "NoExecute" }] })).toBe(true);
    expect(node({}, { taints: [{ key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" }] })).toBe(
      false,
    );
    expect(node({ deletionTimestamp: "2026-01-01T00:00:00Z" })).toBe(false);
  });
});

describe("latency of network programming", () => {
  it("03/34 changes triggered before the start give no sample, two updates give two", async () => {
    const { clock, cluster, arrive, sync, value, observer } = setUp();
    const start = clock.wall();
    cluster.upsert("EndpointSlice", slice("web-1", ["10.0.1.1"], start - 1000));
    arrive();
    sync();
    expect(await value(latency)).toBeUndefined();
    expect(observer.latency()).toBeNull();
    clock.advance(5000);
    cluster.upsert("EndpointSlice", slice("web-1", ["10.0.1.2"], start + 1000));
    arrive();
    cluster.upsert("EndpointSlice", slice("web-1", ["10.0.1.3"], start + 2000));
    arrive();
    sync({ family: "ipv6" });
    expect(await value(latency)).toBeUndefined();
    sync();
    expect(await value(latency, { ip_family: "IPv4" })).toBe(2);
    expect(observer.latency()).toEqual({ p50: 4000, p99: 4000, samples: 2 });
    sync();
    expect(await value(latency)).toBe(2);
  });

  it("03/35 a slice that came and went gives none; one that came again gives one", async () => {
    const { clock, cluster, arrive, sync, value } = setUp();
    const start = clock.wall();
    clock.advance(5000);
    cluster.upsert("EndpointSlice", slice("web-1", ["10.0.1.1"], start + 1000));
    cluster.remove("EndpointSlice", "shop", "web-1");
    arrive();
    sync();
    expect(await value(latency)).toBeUndefined();
    cluster.upsert("EndpointSlice", slice("web-1", ["10.0.1.1"], start + 1000));
    cluster.remove("EndpointSlice", "shop", "web-1");
    cluster.upsert("EndpointSlice", slice("web-1", ["10.0.1.1"], start + 2000));
    arrive();
    sync();
    expect(await value(latency)).toBe(1);
  });
});

describe("a Sync", () => {
  it("03/36 that fails is timed, but moves no timestamp and loses its latency samples", async () => {
    const { clock, cluster, arrive, sync, value } = setUp();
    const start = clock.wall();
    clock.advance(1000);
    sync();
    const before = await value(`${changes}last_timestamp_seconds`);
    expect(before).toBe(clock.wall() / 1000);
    clock.advance(5000);
    cluster.upsert("EndpointSlice", slice("web-1", ["10.0.1.1"], start + 2000));
    arrive();
    sync({ outcome: failed });
    expect(await value(`${changes}duration_seconds`)).toBe(2);
    expect(await value(`${changes}last_timestamp_seconds`)).toBe(before);
    expect(await value(`${changes}nftables_sync_failures_total`)).toBe(1);
    sync();
    expect(await value(latency)).toBeUndefined();
  });

  it("03/39 that was only asked for is not timed", async () => {
    const { clock, observer, value } = setUp();
    observer.started("ipv4");
    observer.queued("ipv4");
    expect(await value(`${changes}duration_seconds`)).toBeUndefined();
    expect(await value(`${changes}last_queued_timestamp_seconds`, { ip_family: "IPv4" })).toBe(
      clock.wall() / 1000,
    );
  });

  it("is full or partial; a failed partial one in iptables mode is counted as such", async () => {
    const { sync, value } = setUp("iptables");
    sync({ trigger: "first" });
    sync({ trigger: "change" });
    sync({ trigger: "change", outcome: failed });
    sync({ trigger: "retry", outcome: failed });
    expect(await value("kubeproxy_sync_full_proxy_rules_duration_seconds")).toBe(2);
    expect(await value("kubeproxy_sync_partial_proxy_rules_duration_seconds")).toBe(2);
    expect(await value(`${changes}iptables_restore_failures_total`)).toBe(2);
    expect(await value(`${changes}iptables_partial_restore_failures_total`)).toBe(1);
  });

  it("counts a restore that failed also when what was refused could be set aside", async () => {
    const { sync, value } = setUp("iptables");
    sync({ trigger: "change", retries: 2 });
    expect(await value(`${changes}iptables_restore_failures_total`)).toBe(2);
    expect(await value(`${changes}iptables_partial_restore_failures_total`)).toBe(1);
  });

  it("20/33 counts failed restores in ipvs mode, and nothing else that fails there", async () => {
    const { sync, value } = setUp("ipvs");
    sync({ trigger: "change", outcome: failed });
    sync({ trigger: "retry", outcome: { ...failed, ofRules: false } });
    expect(await value(`${changes}iptables_restore_failures_total`)).toBe(1);
  });

  it("10/55 counts the rules that iptables mode holds, and those it wrote last", async () => {
    const { sync, value } = setUp("iptables");
    sync({ rules: [{ table: "nat", held: 120, written: 120 }] });
    sync({ rules: [{ table: "nat", held: 121, written: 3 }] });
    const nat = { table: "nat", ip_family: "IPv4" };
    expect(await value(`${changes}iptables_total`, nat)).toBe(121);
    expect(await value(`${changes}iptables_last`, nat)).toBe(3);
  });

  it("reports operations, bytes, outcome and repaired drift", async () => {
    const { sync, observer, value } = setUp();
    observer.readBack("ipv4", 2, "2 elements are missing");
    sync({ trigger: "drift", outcome: failed });
    expect(await value("turnout_drift_repaired_total")).toBeUndefined();
    sync({ trigger: "drift" });
    sync({ trigger: "drift" });
    sync({ trigger: "resync", outcome: failed });
    expect(await value("turnout_syncs_total", { trigger: "drift", outcome: "ok" })).toBe(2);
    expect(await value("turnout_syncs_total", { trigger: "resync", outcome: "failed" })).toBe(1);
    expect(await value("turnout_sync_operations")).toBe(4);
    expect(await value("turnout_sync_bytes")).toBe(4);
    expect(await value("turnout_drift_repaired_total")).toBe(2);
    expect(await value("turnout_read_back_differences_total")).toBe(2);
  });

  it("moves health: queued, failed, differing, refused, healed", () => {
    const { clock, observer, sync, health } = setUp();
    const kinds = () => health.verdict().reasons.map((reason) => reason.kind);
    observer.started("ipv4");
    sync({ outcome: failed });
    observer.queued("ipv4");
    observer.readBack("ipv4", 1, "1 element is missing");
    clock.advance(60_000);
    expect(kinds()).toEqual(["late", "failing", "differs", "never-synced"]);
    const refused = [{ kind: "refused", object: "Service a/b", field: "", message: "no" } as const];
    sync({ outcome: { kind: "ok", refused } });
    expect(health.verdict().reasons).toMatchObject([{ kind: "refused", message: "Service a/b: no" }]);
    sync();
    expect(kinds()).toEqual([]);
  });

  it("a host that could not be read may differ, and nothing of it counts as repaired", async () => {
    const { clock, observer, sync, health, value } = setUp();
    observer.started("ipv4");
    sync();
    observer.readBack("ipv4", null, "drift: Cannot read");
    sync({ trigger: "drift", outcome: failed });
    clock.advance(60_000);
    expect(health.verdict().reasons.map(({ kind }) => kind)).toEqual(["failing", "differs"]);
    sync({ trigger: "drift" });
    expect(health.verdict().reasons).toEqual([]);
    expect(await value("turnout_read_back_differences_total")).toBe(0);
    expect(await value("turnout_drift_repaired_total")).toBe(0);
  });

  it.each<[ModeName, number]>([
    ["nftables", 2],
    ["iptables", 2],
    ["ipvs", 1],
  ])(
    "03/38 policy Local without local endpoints: in %s mode two ports of one Service count %i",
    async (mode, expected) => {
      const { cluster, arrive, sync, value } = setUp(mode);
      const ports = [
        { name: "a", port: 80 },
        { name: "b", port: 81 },
      ];
      const balancer = { type: "LoadBalancer", externalTrafficPolicy: "Local", healthCheckNodePort: 32000 };
      cluster.upsert("Service", service("web", balancer, ports));
      cluster.upsert("EndpointSlice", slice("web-1", ["10.0.1.1"], null, "IPv4", ports));
      arrive();
      const gauge = (policy: string) =>
        value(`${changes}no_local_endpoints_total`, { traffic_policy: policy });
      sync({ outcome: failed });
      expect(await gauge("external")).toBeUndefined();
      sync();
      expect([await gauge("external"), await gauge("internal")]).toEqual([expected, 0]);
    },
  );

  it("what the node has of each Service follows successful Syncs", () => {
    const { cluster, arrive, sync, observer } = setUp();
    const balancer = { type: "LoadBalancer", externalTrafficPolicy: "Local", healthCheckNodePort: 32000 };
    cluster.upsert("Service", service("web", balancer));
    arrive();
    sync({ outcome: failed });
    expect(observer.local("ipv4").checked()).toEqual([]);
    sync();
    expect(observer.local("ipv4").checked()).toEqual([
      { service: "shop/web", port: 32000, localEndpoints: 0 },
    ]);
    const other: Family = "ipv6";
    expect(observer.local(other).checked()).toEqual([]);
  });
});
