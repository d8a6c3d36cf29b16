// Objects to Snapshot and Routes: 10,000 Services with 10 endpoints each, cold; one changed slice; heap that stays.
import type { FamilySettings } from "../src/config/resolve/settings.ts";
import { Cluster } from "../src/manifests/cluster.ts";
import { type Kind, slim } from "../src/manifests/objects.ts";
import { route } from "../src/routing/routes.ts";
import { ipv4Settings } from "../test/support/routed.ts";
import { bestMs, publish, retainedMB } from "./lib/measure.ts";

const services = 10_000;
const endpointsEach = 10;

const documents = Array.from({ length: services }, (_, i) => [
  ["Service", JSON.stringify(service(i))] as const,
  ["EndpointSlice", JSON.stringify(endpointSlice(i, endpointsEach))] as const,
]).flat();

const settings: FamilySettings = {
  ...ipv4Settings,
  nodeName: "node-0",
  zone: "europe-west1-a",
  detector: { kind: "none" },
};

const routesMs = bestMs(15, parsedObjects, loadRoutes);
const coldMs = bestMs(15, parsedObjects, load);
const parseMs = bestMs(
  3,
  () => documents,
  () => parsedObjects(),
);
const cluster = load(parsedObjects());
let size = endpointsEach;
const changeMs = bestMs(
  101,
  () => {
    size = 2 * endpointsEach - 1 - size;
    return slim("EndpointSlice", endpointSlice(4711, size));
  },
  (object) => {
    cluster.upsert("EndpointSlice", object);
    cluster.take();
  },
);
const relistMs = bestMs(3, parsedObjects, (objects) => {
  for (const kind of ["Service", "EndpointSlice"] as const) {
    cluster.replace(
      kind,
      objects.filter(([k]) => k === kind).map(([, object]) => object),
    );
  }
  cluster.take();
});

const rate = (count: number, ms: number) => (count / ms) * 1000;
publish([
  {
    what: "objects → Routes, cold",
    value: rate(services, routesMs),
    unit: "Services/s",
    limit: 50_000,
    atLeast: true,
  },
  { what: "objects → Snapshot, cold", value: rate(services, coldMs), unit: "Services/s" },
  { what: "JSON → slim objects", value: rate(documents.length, parseMs), unit: "objects/s" },
  { what: "one changed slice → Snapshot", value: changeMs * 1000, unit: "µs" },
  { what: "relist of everything, nothing changed", value: relistMs, unit: "ms" },
  {
    what: "heap kept by objects and Snapshot",
    value: retainedMB(() => load(parsedObjects())),
    unit: "MB",
    limit: 60,
  },
  { what: "heap kept with Routes", value: retainedMB(() => loadRoutes(parsedObjects())), unit: "MB" },
]);

function parsedObjects(): readonly (readonly [Kind, unknown])[] {
  return documents.map(([kind, json]) => [kind, slim(kind, JSON.parse(json))]);
}

/** What must stay in memory for the next change. */
function loadRoutes(objects: readonly (readonly [Kind, unknown])[]): unknown {
  const cluster = new Cluster("node-0");
  for (const [kind, object] of objects) cluster.upsert(kind, object);
  return { cluster, routes: route(null, cluster.take().ipv4, settings) };
}

function load(objects: readonly (readonly [Kind, unknown])[]): Cluster {
  const made = new Cluster("node-0");
  for (const [kind, object] of objects) made.upsert(kind, object);
  made.take();
  return made;
}

/** As the API server sends it, with what we drop. */
function service(i: number): unknown {
  return {
    metadata: {
      ...metadata(i, `service-${i}`),
      labels: { app: `app-${i}`, "app.kubernetes.io/managed-by": "Helm" },
      annotations: { "meta.helm.sh/release-name": `release-${i}` },
    },
    spec: {
      ports: [{ name: "http", protocol: "TCP", port: 80, targetPort: 8080 }],
      selector: { app: `app-${i}` },
      clusterIP: clusterIP(i),
      clusterIPs: [clusterIP(i)],
      type: "ClusterIP",
      sessionAffinity: "None",
      ipFamilies: ["IPv4"],
      ipFamilyPolicy: "SingleStack",
      internalTrafficPolicy: "Cluster",
    },
    status: { loadBalancer: {} },
  };
}

function endpointSlice(i: number, count: number): unknown {
  return {
    metadata: {
      ...metadata(i, `service-${i}-x7k2p`),
      labels: { "kubernetes.io/service-name": `service-${i}`, app: `app-${i}` },
      annotations: { "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-02T03:04:05Z" },
    },
    addressType: "IPv4",
    endpoints: Array.from({ length: count }, (_, j) => endpoint(i, j)),
    ports: [{ name: "http", protocol: "TCP", port: 8080 }],
  };
}

function endpoint(i: number, j: number): unknown {
  return {
    addresses: [`10.${j}.${i >> 8}.${i & 255}`],
    conditions: { ready: true, serving: true, terminating: false },
    targetRef: {
      kind: "Pod",
      namespace: `namespace-${i % 100}`,
      name: `app-${i}-6b7f9c-${j}`,
      uid: `${i}-${j}`,
    },
    nodeName: `node-${(i * 7 + j) % 1000}`,
    zone: `europe-west1-${"abc"[j % 3]}`,
    hints: { forZones: [{ name: `europe-west1-${"abc"[j % 3]}` }] },
  };
}

function metadata(i: number, name: string): Record<string, unknown> {
  return { name, namespace: `namespace-${i % 100}`, uid: `uid-${i}`, resourceVersion: String(1000 + i) };
}

function clusterIP(i: number): string {
  return `172.30.${i >> 8}.${i & 255}`;
}
