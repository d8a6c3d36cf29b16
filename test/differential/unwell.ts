// What a kube-proxy, the real one or ours, answers to probes while its node or itself is unwell.
import type { IncomingHttpHeaders } from "node:http";
import { httpGet } from "../kernel/http.ts";
import type { Namespace } from "../kernel/netns.ts";
import { changedShopSlice, shop } from "../kernel/shop.ts";
import { eventually, nodeObject } from "../kernel/site.ts";
import { endpoint, slice } from "../objects.ts";
import { nodeName, places } from "../places.ts";
import type { KubeObject } from "../reference/objects.ts";
import { takeTable } from "./owner.ts";
import { withProxy } from "./watched.ts";

const checkPort = 32_000;
const checked = `${places.host}:${checkPort}/`;
const probed = ["127.0.0.1:10256/healthz", "127.0.0.1:10256/livez", checked];

/** By probe; bodies without times and without our reasons. */
export type Answers = Readonly<
  Record<string, { readonly code: number; readonly weight: string | undefined; readonly body: unknown }>
>;

export type Unwell = { readonly leaving: Answers; readonly late: Answers; readonly well: Answers };

/** The node is about to be removed; then nothing can be written for longer than two periods; then all is well. */
export function unwell(program: string): Promise<Unwell> {
  const balanced = { type: "LoadBalancer", externalTrafficPolicy: "Local", healthCheckNodePort: checkPort };
  const objects = [shop(balanced)[0]!, localSlice()];
  const configuration = { mode: "nftables", nftables: { syncPeriod: "1s", minSyncPeriod: "10ms" } } as const;
  return withProxy(program, configuration, objects, async (proxy, { netns }) => {
    const status = async () => (await httpGet(netns, "http://127.0.0.1:10256/healthz"))?.status;
    const is = (code: number) => eventually(async () => (await status()) === code, `${code} of ${program}`);
    const weight = async (page: string) => weightIn((await httpGet(netns, `http://${page}`))?.headers ?? {});
    await eventually(async () => (await weight(checked)) === "2", `local endpoints of ${program}`);
    proxy.api.put(tainted());
    await is(503);
    const leaving = await answers(netns);
    proxy.api.put(nodeObject());
    await is(200);
    const thief = await takeTable(netns);
    let late: Answers;
    try {
      proxy.api.put(changedShopSlice(new Date()));
      await is(503);
      late = await answers(netns);
    } finally {
      await thief.end();
    }
    await is(200);
    await eventually(async () => (await weight(checked)) === "0", `no local endpoints of ${program}`);
    return { leaving, late, well: await answers(netns) };
  });
}

async function answers(netns: Namespace): Promise<Answers> {
  const found: [string, Answers[string]][] = [];
  for (const page of probed) {
    const { status, headers, body } = (await httpGet(netns, `http://${page}`))!;
    const { reasons: _, ...rest } = JSON.parse(body.replace(/"\d{4}-\d{2}-\d{2}T[\d:.]+Z"/g, '"TIME"'));
    found.push([page, { code: status, weight: weightIn(headers), body: rest }]);
  }
  return Object.fromEntries(found);
}

function weightIn(headers: IncomingHttpHeaders): string | undefined {
  return headers["x-load-balancing-endpoint-weight"]?.toString();
}

function tainted(): KubeObject {
  const node = nodeObject();
  const taints = [{ key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" }];
  return { ...node, spec: { ...(node.spec as object), taints } };
}

/** Two endpoints on this node. */
function localSlice(): KubeObject {
  const endpoints = ["10.180.0.1", "10.180.0.2"].map((address) => endpoint(address, { nodeName }));
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    ...slice(endpoints),
  } as unknown as KubeObject;
}
