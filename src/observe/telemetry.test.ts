// Everything connected: objects of a cluster go in, probes and scrapers see what they should.

import { get } from "node:http";
import { createServer } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { logLines } from "../../test/support/log-lines.ts";
import { parsePrometheus } from "../../test/support/prometheus.ts";
import { unusedPort } from "../../test/support/sockets.ts";
import { plainRecord } from "../../test/support/sync-record.ts";
import { telemetrySettings } from "../../test/support/telemetry-settings.ts";
import { Cluster } from "../manifests/cluster.ts";
import { initialStatus } from "../sources/source.ts";
import { systemClock } from "./clock.ts";
import type { EventRequest } from "./events/event.ts";
import { openTelemetry, type TelemetrySettings } from "./telemetry.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function occupied(): Promise<{ port: number; free: () => Promise<unknown> }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { port, free: () => new Promise((resolve) => server.close(resolve)) };
}

async function open(given: Partial<TelemetrySettings> = {}) {
  const [healthz, metrics] = [await unusedPort(), await unusedPort()];
  const failures: Error[] = [];
  const { log, lines } = logLines(systemClock);
  const telemetry = openTelemetry(
    telemetrySettings(
      { healthz, metrics },
      { gates: [{ name: "ComponentStatusz", stage: "BETA", on: true }], ...given },
    ),
    {
      clock: systemClock,
      random: Math.random,
      log,
      counters: { accounted: async () => null, nftables: async () => new Map() },
      process: {
        readText: () => "",
        countEntries: () => 1,
        cpuSeconds: () => 1,
        residentBytes: () => 1,
        heapUsedBytes: () => 1,
        heapLimitBytes: () => 2,
      },
      onHardFail: (error) => failures.push(error),
    },
  );
  closers.push(telemetry.close);
  return { telemetry, healthz, metrics, failures, lines };
}

async function sendRequest(port: number, path: string): Promise<{ status: number; body: string }> {
  for (let tries = 0; ; tries++) {
    try {
      return await new Promise((resolve, reject) => {
        get({ host: "127.0.0.1", port, path, agent: false }, (response) => {
          let body = "";
          response.on("data", (chunk) => {
            body += chunk;
          });
          response.on("end", () => resolve({ status: response.statusCode!, body }));
        }).on("error", reject);
      });
    } catch (error) {
      if (tries === 200) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

function loadBalancer(healthCheckNodePort: number) {
  return {
    metadata: { namespace: "shop", name: "web" },
    spec: {
      type: "LoadBalancer",
      clusterIP: "172.30.0.1",
      clusterIPs: ["172.30.0.1"],
      ipFamilies: ["IPv4"],
      externalTrafficPolicy: "Local",
      healthCheckNodePort,
      ports: [{ port: 80 }],
    },
  };
}

const synced = { ...plainRecord, trigger: "first" as const, finishedAt: 1005, readBack: true };

const watched = { ...initialStatus, synced: true };

describe("a proxy that is observed", () => {
  it("answers probes and scrapers from the Syncs it observes", async () => {
    const { telemetry, healthz, metrics } = await open();
    const cluster = new Cluster("node-a");
    const port = await unusedPort();
    cluster.upsert("Node", { metadata: { name: "node-a" } });
    cluster.upsert("Service", loadBalancer(port));
    const snapshot = cluster.take();
    telemetry.serve();
    telemetry.started("ipv4");
    telemetry.arrived(snapshot);
    telemetry.taken("ipv4", snapshot);
    telemetry.queued("ipv4");
    telemetry.synced(synced, snapshot);
    telemetry.follow({ status: () => ({ synced: true, resources: { Service: watched } }) });
    telemetry.requested({
      method: "GET",
      host: "h:1",
      code: 200,
      resent: false,
      cost: { seconds: 1, heldSeconds: 0, requestBytes: 0, responseBytes: 1 },
    });
    expect(await sendRequest(healthz, "/healthz")).toMatchObject({ status: 200 });
    expect(await sendRequest(port, "/")).toMatchObject({
      status: 503,
      body: expect.stringContaining('"localEndpoints": 0'),
    });
    expect((await sendRequest(metrics, "/proxyMode")).body).toBe("nftables");
    expect((await sendRequest(metrics, "/statusz")).body).toContain("Binary version: 1.37.1");
    expect((await sendRequest(metrics, "/flagz")).status).toBe(404);
    const scraped = parsePrometheus((await sendRequest(metrics, "/metrics")).body);
    expect(scraped.get("kubeproxy_proxy_healthz_total")!.series).toMatchObject([
      { labels: { code: "200" }, value: 1 },
    ]);
    expect(scraped.get("rest_client_requests_total")!.series).toMatchObject([{ labels: { code: "200" } }]);
    expect(scraped.get("turnout_healthy")!.series.map((one) => one.value)).toEqual([1, 1]);
    expect(scraped.get("turnout_watch_age_seconds")!.series).toMatchObject([
      { labels: { resource: "services" } },
    ]);
  });

  it("Problems are logged once and counted by kind until they are solved", async () => {
    const { telemetry, lines, metrics } = await open();
    telemetry.serve();
    const cluster = new Cluster("node-a");
    const arrive = (externalIPs: readonly string[]) => {
      const { metadata, spec } = loadBalancer(1);
      cluster.upsert("Service", { metadata, spec: { ...spec, externalIPs } });
      telemetry.arrived(cluster.take());
    };
    const counted = async () =>
      parsePrometheus((await sendRequest(metrics, "/metrics")).body).get("turnout_problems")?.series ?? [];
    arrive(["nonsense"]);
    const taken = {
      kind: "conflict",
      object: "Service shop/web",
      field: "nodePort",
      message: "is taken",
    } as const;
    telemetry.conflicts("ipv4", [taken]);
    telemetry.conflicts("ipv6", [taken]);
    expect(await counted()).toMatchObject([
      { labels: { kind: "conflict" }, value: 1 },
      { labels: { kind: "invalid-address" }, value: 1 },
    ]);
    expect(lines().filter((line) => line.includes("Object is not as expected"))).toHaveLength(2);
    arrive([]);
    for (const family of ["ipv4", "ipv6"] as const) telemetry.conflicts(family, []);
    expect(await counted()).toEqual([]);
  });

  it("reports a health check node port that is taken as an Event of its Service", async () => {
    const { telemetry } = await open();
    const sent: EventRequest[] = [];
    telemetry.events.connect(async (request) => {
      sent.push(request);
      return 201;
    });
    const blocker = await occupied();
    closers.push(blocker.free);
    const cluster = new Cluster("node-a");
    cluster.upsert("Service", loadBalancer(blocker.port));
    const snapshot = cluster.take();
    telemetry.arrived(snapshot);
    telemetry.taken("ipv4", snapshot);
    telemetry.synced(synced, snapshot);
    await expect.poll(() => sent).not.toEqual([]);
    expect(JSON.parse(sent[0]!.body)).toMatchObject({
      reason: "FailedToStartServiceHealthcheck",
      type: "Warning",
      action: "Listen",
      regarding: { kind: "Service", namespace: "shop", name: "web" },
    });
  });

  it("02/35 with hard-fail sends an Event before it exits", async () => {
    const blocker = await occupied();
    closers.push(blocker.free);
    const { telemetry, failures } = await open({
      hardFail: true,
      metricsAddress: `127.0.0.1:${blocker.port}`,
    });
    const sent: EventRequest[] = [];
    telemetry.events.connect(async (request) => {
      sent.push(request);
      return 201;
    });
    telemetry.serve();
    await expect.poll(() => failures).not.toEqual([]);
    expect(failures[0]!.message).toContain("EADDRINUSE");
    expect(JSON.parse(sent[0]!.body)).toMatchObject({
      reason: "FailedToStartMetricServer",
      regarding: { kind: "Node", name: "node-a" },
    });
  });

  it("without a health address serves no health", async () => {
    const { telemetry, healthz, metrics } = await open({ healthzAddress: "" });
    telemetry.serve();
    expect((await sendRequest(metrics, "/healthz")).body).toBe("ok");
    await expect(
      new Promise((resolve, reject) =>
        get({ port: healthz, host: "127.0.0.1" }, resolve).on("error", reject),
      ),
    ).rejects.toThrow("ECONNREFUSED");
  });
});
