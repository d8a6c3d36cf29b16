// A cluster in files that a test changes, and the page of one of its nodes.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defaultConfig } from "../../src/explain/node-routes.ts";
import { modes } from "../../src/modes/index.ts";
import { systemClock } from "../../src/observe/clock.ts";
import { type PageViews, viewError } from "../../src/observe/status/page-views.ts";
import type { PageFiles } from "../../src/page/files.ts";
import { LatestEvents } from "../../src/page/latest-events.ts";
import type { NodeRecords } from "../../src/page/records/records.ts";
import { type OpenPage, openPage } from "../../src/page/server.ts";
import { sourceNode } from "../../src/page/source-node.ts";
import { NodeViews } from "../../src/page/views.ts";
import { syncDisk } from "../../src/sources/files/disk.ts";

export type TestPage = OpenPage & {
  readonly views: PageViews;
  /** Replaces the cluster. */
  readonly write: (objects: readonly unknown[]) => void;
  /** As if the daemon were gone, and back again. */
  readonly setDown: (down: boolean) => void;
};

export async function openTestPage(
  files: PageFiles,
  objects: readonly unknown[],
  { port = 0, records = null }: { readonly port?: number; readonly records?: NodeRecords | null } = {},
): Promise<TestPage> {
  const folder = mkdtempSync(join(tmpdir(), "turnout-cluster-"));
  const write = (all: readonly unknown[]) =>
    writeFileSync(join(folder, "all.json"), JSON.stringify({ kind: "List", apiVersion: "v1", items: all }));
  write(objects);
  const life = new AbortController();
  const target = {
    spec: { kind: "files", paths: [folder] } as const,
    node: "node-a",
    config: defaultConfig("nftables"),
    disk: { ...syncDisk, done: () => {} },
  };
  const node = await sourceNode(target, modes.nftables, "v1.37.1+turnout.test", systemClock, life.signal);
  const views = new NodeViews(node, systemClock, records);
  const breakable = withBreaks(views);
  const page = {
    files,
    nodes: new Map([["node-a", breakable.views]]),
    flags: "--source=files:shop",
    act: null,
  };
  const opened = await openPage(page, { host: "127.0.0.1", port });
  return {
    ...opened,
    views,
    write,
    setDown: (down: boolean) => breakable.setDown(down),
    async close() {
      life.abort();
      views.close();
      await opened.close();
      rmSync(folder, { recursive: true });
    },
  };
}

function withBreaks(views: NodeViews) {
  let isDown = false;
  const streams = new Set<LatestEvents>();
  const wrapped: PageViews = {
    answer: async (view, query) =>
      isDown ? viewError(503, "the daemon does not respond") : views.answer(view, query),
    events() {
      const stream = isDown ? new LatestEvents() : views.events();
      if (isDown) stream.finish();
      streams.add(stream);
      return stream;
    },
  };
  return {
    views: wrapped,
    setDown: (down: boolean) => {
      isDown = down;
      if (down) for (const stream of streams) stream.finish();
      streams.clear();
    },
  };
}

export type Wanted = {
  readonly name: string;
  readonly namespace?: string;
  readonly ip: string;
  readonly ready?: number;
  readonly unready?: number;
  readonly nodePort?: number;
  readonly local?: boolean;
};

/** A Service with its EndpointSlice. */
export function service(wanted: Wanted): unknown[] {
  const { name, namespace = "shop", ip, ready = 0, unready = 0, nodePort, local = false } = wanted;
  const endpoint = (i: number, isReady: boolean) => ({
    addresses: [`10.0.${(i % 2) + 1}.${10 + i}`],
    nodeName: i % 2 === 0 ? "node-a" : "node-b",
    conditions: { ready: isReady, serving: isReady, terminating: false },
  });
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name, namespace },
      spec: {
        type: nodePort === undefined ? "ClusterIP" : "NodePort",
        clusterIP: ip,
        clusterIPs: [ip],
        ipFamilies: ["IPv4"],
        ports: [
          { port: 80, protocol: "TCP", targetPort: 8080, ...(nodePort === undefined ? {} : { nodePort }) },
        ],
        ...(local ? { externalTrafficPolicy: "Local" } : {}),
      },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name: `${name}-1`, namespace, labels: { "kubernetes.io/service-name": name } },
      addressType: "IPv4",
      ports: [{ name: "", port: 8080, protocol: "TCP" }],
      endpoints: Array.from({ length: ready + unready }, (_, i) => endpoint(i, i < ready)),
    },
  ];
}

export const nodes: readonly unknown[] = ["node-a", "node-b"].map((name, i) => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name },
  spec: { podCIDR: `10.0.${i + 1}.0/24`, podCIDRs: [`10.0.${i + 1}.0/24`] },
  status: { addresses: [{ type: "InternalIP", address: `192.168.0.${i + 2}` }] },
}));

export const shop: readonly unknown[] = [
  ...nodes,
  ...service({ name: "web", ip: "172.30.0.10", ready: 3, unready: 1, nodePort: 30080 }),
  ...service({ name: "cart", ip: "172.30.0.11", ready: 1, nodePort: 30081, local: true }),
  ...service({ name: "broken", ip: "172.30.0.12" }),
  ...service({ name: "dns", namespace: "kube-system", ip: "172.30.0.13", ready: 2 }),
];
