// An API server, a Source that reads it, and a consumer that keeps the latest Snapshot; for tests of the API source.

import { ApiServer, type ApiServerOptions } from "../../playground/api/server.ts";
import { Cluster } from "../../src/manifests/cluster.ts";
import { kinds } from "../../src/manifests/objects.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { apiClient } from "../../src/sources/api/client.ts";
import { type Connection, resolveConnection } from "../../src/sources/api/connection.ts";
import { credentialsOf } from "../../src/sources/api/credentials.ts";
import { anonymousUser } from "../../src/sources/api/kubeconfig.ts";
import type { ReflectorFigures } from "../../src/sources/api/reflector.ts";
import { apiSource } from "../../src/sources/api/source.ts";
import { throttle } from "../../src/sources/api/throttle.ts";
import type { Source } from "../../src/sources/source.ts";
import type { Clock, World } from "../../src/sources/world.ts";
import { caCert, serverCert, serverKey } from "./certificates.ts";
import { protobufEncoder } from "./protobuf/encode.ts";

export const nodeName = "node-1";

/** Tests of the API source run in both. */
export const encodings = ["json", "protobuf"] as const;
export type EncodingName = (typeof encodings)[number];

export type ApiRig = {
  readonly server: ApiServer;
  readonly source: Source;
  readonly snapshots: Snapshot[];
  /** The contents of the latest Snapshot. */
  seen(): unknown;
  /** The expected contents, built from the server's objects. */
  truth(): unknown;
  stop(): Promise<void>;
};

export async function apiRig(
  clock: Clock,
  options: {
    readonly server?: ApiServerOptions;
    /** What the server offers and the Source prefers; absent: JSON. */
    readonly encoding?: EncodingName;
    readonly figures?: ReflectorFigures;
    readonly random?: () => number;
    /** Where the Source finds its token. */
    readonly tokenFile?: string;
    /** Called before the first request. */
    readonly prepare?: (server: ApiServer) => void;
    /** What the consumer does with each Snapshot before it requests the next. */
    readonly busy?: () => Promise<unknown>;
  } = {},
): Promise<ApiRig> {
  // A token is sent over TLS alone.
  const tls = options.tokenFile === undefined ? {} : { tls: { key: serverKey, cert: serverCert } };
  const encoded = options.encoding === "protobuf" ? { encoder: protobufEncoder } : {};
  const server = new ApiServer({ ...tls, ...encoded, ...options.server });
  await server.listen();
  options.prepare?.(server);
  const world: World = { clock, random: options.random ?? Math.random, env: {}, run: async () => "" };
  const life = new AbortController();
  const connection = await connectionTo(server, options.tokenFile ?? "", world);
  const client = apiClient(connection, world, throttle({ qps: -1, burst: 0 }, clock), "kube-proxy/test");
  const figures = options.figures ? { figures: options.figures } : {};
  const source = apiSource({ client, nodeName, world, ...figures }, life.signal);
  const snapshots: Snapshot[] = [];
  const consumed = (async () => {
    for await (const snapshot of source.snapshots(life.signal)) {
      snapshots.push(snapshot);
      await options.busy?.();
    }
  })();
  return {
    server,
    source,
    snapshots,
    seen: () => viewOf(snapshots.at(-1)),
    truth: () => viewOf(truthOf(server)),
    async stop() {
      life.abort();
      await consumed;
      client.close();
      await server.close();
    },
  };
}

async function connectionTo({ url }: ApiServer, tokenFile: string, world: World): Promise<Connection> {
  const connection = await resolveConnection({ master: url }, world);
  if (tokenFile === "") return connection;
  const cluster = { server: url, ca: null, insecure: false, tlsServerName: "", proxyUrl: "", raw: {} };
  const credentials = credentialsOf({ ...anonymousUser, tokenFile }, cluster, world);
  return { ...connection, ca: async () => caCert, tlsServerName: "api.example", credentials };
}

/** The parts of a Snapshot that do not depend on how it was reached. */
export function viewOf(snapshot: Snapshot | undefined): unknown {
  if (!snapshot) return null;
  const sorted = (family: "ipv4" | "ipv6") =>
    [...snapshot[family].ports.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  return {
    ipv4: sorted("ipv4"),
    ipv6: sorted("ipv6"),
    node: snapshot.node,
    cidrs: [snapshot.ipv4.serviceCIDRs, snapshot.ipv6.serviceCIDRs],
  };
}

function truthOf(server: ApiServer): Snapshot {
  const cluster = new Cluster(nodeName);
  const hidden = (labels: Readonly<Record<string, string>> = {}) =>
    "service.kubernetes.io/service-proxy-name" in labels || "service.kubernetes.io/headless" in labels;
  for (const kind of kinds) {
    cluster.replace(
      kind,
      server.list(kind).filter(({ metadata }) => !hidden(metadata.labels)),
    );
  }
  return cluster.take();
}

export const node = (address = "192.168.0.1") => ({
  kind: "Node",
  metadata: { name: nodeName, labels: { "topology.kubernetes.io/zone": "a" } },
  status: { addresses: [{ type: "InternalIP", address }] },
});

export const service = (name: string, clusterIP = "172.30.0.1", labels: Record<string, string> = {}) => ({
  kind: "Service",
  metadata: { name, namespace: "shop", labels },
  spec: {
    type: "ClusterIP",
    clusterIP,
    clusterIPs: [clusterIP],
    ports: [{ name: "web", port: 80, protocol: "TCP" }],
  },
});

export const slice = (name: string, owner: string, addresses: readonly string[], extra: object = {}) => ({
  kind: "EndpointSlice",
  metadata: { name, namespace: "shop", labels: { "kubernetes.io/service-name": owner }, ...extra },
  addressType: "IPv4",
  ports: [{ name: "web", port: 8080, protocol: "TCP" }],
  endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
});

export const serviceCIDR = (name: string, cidr: string) => ({
  kind: "ServiceCIDR",
  metadata: { name },
  spec: { cidrs: [cidr] },
});
