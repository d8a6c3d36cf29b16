// What a kube-proxy, the real one or ours, serves for monitoring: its metrics, its health, its configuration.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { httpGet } from "../kernel/http.ts";
import { changedShopSlice, shop, shopSlice } from "../kernel/shop.ts";
import { eventually, nodeObject, openSite, type Site } from "../kernel/site.ts";
import { nodeName } from "../places.ts";
import { enter } from "../reference/foothold.ts";
import type { KubeObject } from "../reference/objects.ts";
import { type RunningProxy, startProxy } from "../reference/proxy.ts";
import { parsePrometheus } from "../support/prometheus.ts";
import { withProxy } from "./watched.ts";

export type Answers = {
  /** Every series without its value: `name{label="value"} type`. */
  readonly series: readonly string[];
  /** Status, headers and body of the other pages, by path; without times and names of folders. */
  readonly pages: Readonly<Record<string, unknown>>;
};

/** How long and how often to poll: the real one is slow in a user-mode kernel. */
type Pace = { readonly timeoutMs: number; readonly everyMs: number };

/** What dashboards and alerts for kube-proxy use. */
const watched = /^(kubeproxy|process|kubernetes|rest_client_(request|requests|response|rate))_/;
const configuration = { detectLocalMode: "ClusterCIDR", clusterCIDR: "10.180.0.0/16,fd00:180::/48" };
const metricsAt = "127.0.0.1:10249";
const pages = [
  "127.0.0.1:10256/healthz",
  "127.0.0.1:10256/livez",
  ...["healthz", "healthz?verbose", "proxyMode", "configz", "nothing"].map((path) => `${metricsAt}/${path}`),
];

/** UDP, so that there are stale flows. */
const ports = [
  { name: "http", protocol: "TCP", port: 80 },
  { name: "dns", protocol: "UDP", port: 53 },
];
const withPorts = (slice: KubeObject) => ({ ...slice, ports });

const partial = "kubeproxy_sync_partial_proxy_rules_duration";
const failures = "kubeproxy_sync_proxy_rules_iptables_restore_failures";
const partialFailures = "kubeproxy_sync_proxy_rules_iptables_partial_restore_failures";
/** Series that come late; the Event of the start is the only request that is no watch. */
const behindChange = [
  "kubeproxy_network_programming",
  "kubeproxy_conntrack_reconciler_deleted",
  "rest_client_response_size",
];
/** When a restore fails, and how it shows: in ipvs mode ours runs none for a change of endpoints. */
const late = {
  nftables: { atStart: [], behindChange: [...behindChange, partial], inTheEnd: [] },
  iptables: { atStart: [], behindChange: [...behindChange, partial], inTheEnd: [failures, partialFailures] },
  ipvs: { atStart: [failures], behindChange, inTheEnd: [] },
} as const;

export async function answersOf(program: string, mode: keyof typeof late, pace?: Pace): Promise<Answers> {
  const site = await openSite();
  let proxy: RunningProxy | null = null;
  try {
    const get = (page: string) => httpGet(site.netns, `http://${page}`);
    let series: readonly string[] = [];
    const haveCome = async (names: readonly string[]) => {
      const texts = await Promise.all(["metrics", "metrics/slis"].map((path) => get(`${metricsAt}/${path}`)));
      series = texts.flatMap((answer) => seriesIn(answer?.body ?? ""));
      return names.every((name) => series.some((line) => line.startsWith(name)));
    };
    const wait = (names: readonly string[]) =>
      eventually(() => haveCome(names), `${names.join(", ")} of ${program}`, pace?.timeoutMs);
    const { atStart, behindChange, inTheEnd } = late[mode];
    const flawed = withFlaw(program, site);
    if (atStart.length > 0) flawed.fail();
    const objects = [nodeObject(), ...shop({ ports }).map(withPorts)];
    proxy = await startProxy(
      enter(site.netns),
      flawed.program,
      { mode, ...configuration },
      nodeName,
      objects,
    );
    await wait(atStart);
    flawed.repair();
    proxy.api.put(withPorts(shopSlice("web-1", { endpoints: [] })));
    await proxy.ready(pace);
    const answers: [string, unknown][] = [];
    for (const page of pages) answers.push([page, comparable(await get(page))]);
    // A change with a trigger time adds a sample of latency.
    proxy.api.put(withPorts(changedShopSlice(new Date())));
    await wait(behindChange);
    flawed.fail();
    proxy.api.put(withPorts(shopSlice()));
    await wait(inTheEnd);
    return { series, pages: Object.fromEntries(answers) };
  } finally {
    await proxy?.stop();
    await site.close();
  }
}

/** The answer to a program that asks for the flags. */
export function flagsOf(program: string): Promise<unknown> {
  return withProxy(program, { mode: "nftables" }, [], async (_, { netns }) => {
    const Accept = "application/json;v=v1beta1;g=config.k8s.io;as=Flagz";
    return comparable(await httpGet(netns, `http://${metricsAt}/flagz`, { Accept }));
  });
}

/** The program with an iptables-restore that fails while it should. */
function withFlaw(
  program: string,
  { folder, netns }: Site,
): {
  readonly program: string;
  fail(): void;
  repair(): void;
} {
  const bin = join(folder, "flawed");
  mkdirSync(bin);
  const script = (name: string, ...lines: readonly string[]) => {
    writeFileSync(join(bin, name), ["#!/bin/sh", ...lines, ""].join("\n"), { mode: 0o755 });
    return join(bin, name);
  };
  const real = netns.run("sh", "-c", "command -v iptables-restore").trim();
  script("iptables-restore", `[ -e ${bin}/fails ] && exit 1`, `exec ${real} "$@"`);
  return {
    program: script("start", `PATH=${bin}:$PATH exec ${program} "$@"`),
    fail: () => writeFileSync(join(bin, "fails"), ""),
    repair: () => rmSync(join(bin, "fails"), { force: true }),
  };
}

function seriesIn(text: string): string[] {
  const lines = [...parsePrometheus(text)].flatMap(([family, { type, series }]) =>
    watched.test(family) ? series.map(({ name, labels }) => `${name}${labelText(labels)} ${type}`) : [],
  );
  return lines.sort();
}

/** What was built, with what, is of course different; which gates there are is not. */
function labelText(labels: Readonly<Record<string, string>>): string {
  const isBuild = "git_version" in labels;
  const parts = Object.entries(labels).map(([key, value]) => `${key}="${isBuild ? "" : value}"`);
  return `{${parts.sort().join(",")}}`;
}

function comparable(answer: Awaited<ReturnType<typeof httpGet>>): unknown {
  if (answer === null) return null;
  const { status, headers, body } = answer;
  const { date: _, connection: __, "keep-alive": ___, "content-length": ____, ...rest } = headers;
  const lasting = body
    .replace(/"\d{4}-\d{2}-\d{2}T[\d:.]+Z"/g, '"TIME"')
    .replace(/"[^"]*\/turnout-reference-[^"/]*\//g, '"FOLDER/');
  return { status, headers: rest, body: lasting.startsWith("{") ? JSON.parse(lasting) : lasting };
}
