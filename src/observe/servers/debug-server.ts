// The metrics server: `/metrics`, the mode, the configuration, z-pages, and profiles when they are switched on.
import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { SliMetrics } from "../metrics/metrics.ts";
import { textContentType } from "../metrics/text.ts";
import { type Answer, plainText, type Respond } from "./http.ts";
import { profilingPages, type SetVerbosity } from "./profiling.ts";
import { type Page, queryOf, routed } from "./router.ts";
import { flagzPage, type StatusFacts, statuszPage } from "./zpages.ts";

export type DebugServerWorld = {
  /** The text of `/metrics` and of `/metrics/slis`. */
  readonly print: () => Promise<string>;
  readonly printSlis: () => Promise<string>;
  readonly slis: SliMetrics;
  readonly mode: string;
  /** The configuration as a v1alpha1 object, keywords unexpanded. */
  readonly config: () => unknown;
  /** null: gate ComponentFlagz is off. */
  readonly flags: (() => ReadonlyMap<string, string>) | null;
  /** null: gate ComponentStatusz is off. */
  readonly status: Omit<StatusFacts, "paths"> | null;
  /** null: `enableProfiling` is off. */
  readonly setVerbosity: SetVerbosity | null;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Unix time in seconds at which the process started. */
  readonly startTime: number;
};

export function debugPages(world: DebugServerWorld): Respond {
  const listed: [string, Page][] = [
    ["/healthz", (request) => ping(request, world.slis)],
    ["/healthz/ping", () => ({ status: 200, headers: { "Content-Type": plain }, body: "ok" })],
    ["/metrics", (request) => metricsText(request, world.print, world.startTime)],
    ["/metrics/slis", (request) => sliText(request, world)],
    ["/proxyMode", () => plainText(200, world.mode)],
    ["/configz", () => json({ "kubeproxy.config.k8s.io": world.config() })],
  ];
  if (world.flags !== null) listed.push(["/flagz", flagzPage(world.flags)]);
  const paths = [...new Set(listed.map(([path]) => `/${path.split("/")[1]}`))].sort((a, b) =>
    a < b ? -1 : 1,
  );
  const status: [string, Page][] =
    world.status === null ? [] : [["/statusz", statuszPage({ ...world.status, paths }, world.now)]];
  const profiling = world.setVerbosity === null ? [] : profilingPages(world.setVerbosity);
  return routed(new Map([...listed, ...status, ...profiling]));
}

const plain = "text/plain; charset=utf-8";

function json(value: unknown): Answer {
  const headers = { "Content-Type": "application/json", "X-Content-Type-Options": "nosniff" };
  return { status: 200, headers, body: JSON.stringify(value) };
}

/** Reports that this server answers, and nothing about the proxy: that is the health server's task. */
function ping(request: IncomingMessage, slis: SliMetrics): Answer {
  const query = queryOf(request);
  const excluded = query.getAll("exclude");
  if (!excluded.includes("ping")) {
    slis.healthcheck.with({ name: "ping", type: "healthz" }).set(1);
    slis.healthchecks.with({ name: "ping", type: "healthz", status: "success" }).add();
  }
  if (!query.has("verbose")) return plainText(200, "ok");
  const unknown = excluded.filter((name) => name !== "ping" && name !== "").map((name) => `"${name}"`);
  const lines = [
    excluded.includes("ping") ? "[+]ping excluded: ok" : "[+]ping ok",
    ...(unknown.length === 0 ? [] : [`warn: there is nothing to exclude called ${unknown.join(",")}`]),
    "healthz check passed",
  ];
  return plainText(200, `${lines.join("\n")}\n`);
}

const zip = promisify(gzip);

async function metricsText(
  request: IncomingMessage,
  print: () => Promise<string>,
  startTime: number,
): Promise<Answer> {
  const text = await print();
  const headers = {
    "Content-Type": textContentType,
    "Process-Start-Time-Unix": String(Math.floor(startTime)),
  };
  if (!/\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(String(request.headers["accept-encoding"] ?? ""))) {
    return { status: 200, headers, body: text };
  }
  return { status: 200, headers: { ...headers, "Content-Encoding": "gzip" }, body: await zip(text) };
}

async function sliText(request: IncomingMessage, world: DebugServerWorld): Promise<Answer> {
  if (request.method !== "DELETE") return metricsText(request, world.printSlis, world.startTime);
  world.slis.healthcheck.reset();
  world.slis.healthchecks.reset();
  return { status: 200, headers: { "Content-Type": plain }, body: "metrics reset\n" };
}
