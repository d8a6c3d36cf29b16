// Every documented metric gets a value: a proxy in each mode that lives through everything shows all of them.

import { get } from "node:http";
import { connect, createServer, type Server } from "node:net";
import { afterEach, expect, it } from "vitest";
import type { FamilySettings } from "../src/config/resolve/settings.ts";
import { openLocalhost } from "../src/daemon/localhost.ts";
import { reportDrivers } from "../src/daemon/telemetry.ts";
import { Cluster } from "../src/manifests/cluster.ts";
import { keyed } from "../src/model/keyed.ts";
import { modes } from "../src/modes/index.ts";
import { systemClock } from "../src/observe/clock.ts";
import { silentLog } from "../src/observe/log/log.ts";
import { systemProcess } from "../src/observe/metrics/system-process.ts";
import { metricTable, sliMetrics } from "../src/observe/metrics/table.ts";
import { openTelemetry, type Telemetry } from "../src/observe/telemetry.ts";
import { reportTraffic } from "../src/observe/traffic/metrics.ts";
import type { TrafficReport } from "../src/observe/traffic/report.ts";
import { route } from "../src/routing/routes.ts";
import { initialStatus } from "../src/sources/source.ts";
import type { SyncRecord } from "../src/sync/record.ts";
import { endpoint, ipv4Settings, servicePort } from "./support/routed.ts";
import { unusedPort } from "./support/sockets.ts";
import { plainRecord } from "./support/sync-record.ts";
import { telemetrySettings } from "./support/telemetry-settings.ts";

/** Metrics that this test does not bring about; may only shrink. */
const known: readonly string[] = [
  // Requires more clients than a server accepts; see kernel/daemon-faults.test.ts.
  "turnout_server_connections_dropped_total",
];

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

it("every documented metric is written", async () => {
  const shown = new Set<string>();
  for (const mode of ["nftables", "iptables"] as const) {
    const { telemetry, healthz, metrics } = await open(mode);
    useEverything(telemetry);
    await useLocalhost(telemetry);
    for (const path of ["/healthz", "/livez"]) await sendRequest(healthz, path);
    await sendRequest(metrics, "/healthz");
    for (const path of ["/metrics", "/metrics/slis"])
      for (const [, name] of (await sendRequest(metrics, path)).matchAll(/^([a-z_]+?)(?:_bucket)?[{ ]/gm))
        shown.add(name!);
  }
  const names = Object.values({ ...metricTable, ...sliMetrics }).map(({ name }) => name);
  expect(names.filter((name) => !shown.has(name))).toEqual(known);
});

async function open(mode: "nftables" | "iptables") {
  const [healthz, metrics] = [await unusedPort(), await unusedPort()];
  const telemetry = openTelemetry(
    telemetrySettings(
      { healthz, metrics },
      {
        mode,
        showHidden: true,
        gates: [
          { name: "KubeProxyNFTablesLocalhostNodePorts", stage: "ALPHA", on: true },
          { name: "AllowServiceExternalIPs", stage: "", on: true },
        ],
      },
    ),
    {
      clock: systemClock,
      random: Math.random,
      log: silentLog,
      counters: {
        accounted: async () => 1n,
        nftables: async () => new Map([["localhost-nodeport-rejected-tcp", 1n]]),
      },
      process: systemProcess,
      onHardFail: () => {},
    },
  );
  closers.push(telemetry.close);
  return { telemetry, healthz, metrics };
}

function useEverything(telemetry: Telemetry): void {
  const cluster = new Cluster("node-a");
  cluster.upsert("Node", {
    metadata: { name: "node-a" },
    status: { addresses: [{ type: "InternalIP", address: "192.168.0.2" }] },
  });
  cluster.upsert("Service", {
    metadata: { namespace: "shop", name: "web" },
    spec: {
      clusterIP: "172.30.0.1",
      clusterIPs: ["172.30.0.1"],
      ipFamilies: ["IPv4"],
      externalIPs: ["192.168.0.2"],
      ports: [{ port: 80 }],
    },
  });
  const snapshot = { ...cluster.take(), triggeredAt: { ipv4: [Date.now() + 1000], ipv6: [] } };
  telemetry.serve();
  telemetry.started("ipv4");
  telemetry.queued("ipv4");
  telemetry.arrived(snapshot);
  telemetry.taken("ipv4", snapshot);
  telemetry.readBack("ipv4", 1, "changed");
  telemetry.synced(record, snapshot);
  telemetry.synced({ ...record, trigger: "change", outcome: failed }, snapshot);
  telemetry.conflicts("ipv4", [{ kind: "conflict", object: "Service a/b", field: "spec", message: "taken" }]);
  telemetry.swept({
    family: "ipv4",
    milliseconds: 1,
    outcome: { kind: "ok", examined: 1, deleted: 1, complete: true },
  });
  telemetry.countEvents({ events: () => cluster.events });
  telemetry.follow({ status: () => ({ synced: true, resources: { Service: initialStatus } }) });
  const cost = { seconds: 1, heldSeconds: 0, requestBytes: 0, responseBytes: 1 };
  telemetry.requested({ method: "GET", host: "h:1", code: 200, resent: true, cost });
  for (let i = 0; i < 2000; i++) telemetry.events.record("Starting", { kind: "Node", name: `node-${i}` }, "");
  const driver = { report: () => ({ cleanupFailures: 1 }) } as never;
  reportDrivers(telemetry.metrics, { families: ["ipv4"], drivers: new Map([["ipv4", driver]]), owned: true });
  reportTraffic(telemetry.metrics, { setting: "endpoints", refresh: async () => {}, report: () => traffic });
}

const flows = { active: 1, packetsIn: 1, bytesIn: 1, packetsOut: 1, bytesOut: 1 };

const traffic: TrafficReport = {
  setting: "endpoints",
  mode: "nftables",
  at: 0,
  flowsAt: 0,
  counters: { counted: true, gaps: [{ from: 0, to: 1000 }] },
  flows: { counted: true, gaps: [] },
  ports: [
    {
      namespace: "shop",
      name: "web",
      portName: "",
      protocol: "tcp",
      port: 80,
      counts: { connections: 1, refused: 1, outOfRange: 1 },
      flows,
      endpoints: [{ endpoint: "10.0.0.1:80", connections: 1, flows }],
    },
  ],
};

/** One listener that forwards a connection and one whose port is taken. */
async function useLocalhost({ metrics }: Telemetry): Promise<void> {
  const backend = await listening();
  const [free, taken] = [await unusedPort(), portOf(await listening())];
  const settings: FamilySettings = { ...ipv4Settings, nftLocalhost: "serve" };
  const node = {
    families: ["ipv4"],
    settings: { resolved: { settings: { ipv4: settings } } },
    mode: modes.nftables,
  } as unknown as Parameters<typeof openLocalhost>[0];
  const localhost = openLocalhost(node, metrics, silentLog);
  closers.push(() => localhost.close!());
  const ports = [free, taken].map((nodePort) =>
    servicePort(`shop/web-${nodePort}`, {
      nodePort,
      endpoints: [endpoint(`127.0.0.1:${portOf(backend)}`)],
    }),
  );
  const wanted = {
    ports: keyed(ports.map((each) => [each.key, each] as const)),
    changed: new Set(ports.map(({ key }) => key)),
    serviceCIDRs: [],
  };
  const routes = route(null, wanted, settings);
  localhost.observer.afterSync!({ record, changed: routes.changed, routes: () => routes });
  await connected(free);
}

const failed = { kind: "failed", message: "no", ofRules: true } as const;
const record: SyncRecord = {
  ...plainRecord,
  trigger: "first",
  readBack: true,
  rules: [{ table: "nat", held: 1, written: 1 }],
};

async function listening(): Promise<Server> {
  const server = createServer((socket) => socket.end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return server;
}

function portOf(server: Server): number {
  return (server.address() as { port: number }).port;
}

/** Resolves when the server has closed a connection; listeners open a moment after the Sync. */
async function connected(port: number): Promise<void> {
  await retry(
    () =>
      new Promise<void>((resolve, reject) => {
        const socket = connect(port, "127.0.0.1");
        socket.once("error", reject);
        socket.once("close", () => resolve());
        socket.resume();
      }),
  );
}

function sendRequest(port: number, path: string): Promise<string> {
  return retry(
    () =>
      new Promise((resolve, reject) => {
        get({ host: "127.0.0.1", port, path, agent: false }, (response) => {
          let body = "";
          response.on("data", (chunk) => {
            body += chunk;
          });
          response.on("end", () => resolve(body));
        }).on("error", reject);
      }),
  );
}

async function retry<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (tries === 200) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
