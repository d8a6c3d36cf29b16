// A kube-proxy program, the real one or ours, run on the node of the world and checked by packets and stories.
import { setTimeout as sleep } from "node:timers/promises";
import type { KubeObject } from "../cluster.ts";
import { nodeName } from "../places.ts";
import { enter } from "../reference/foothold.ts";
import { replaceObjects } from "../reference/objects.ts";
import { type Mode, startProxy } from "../reference/proxy.ts";
import type { ScenarioSettings } from "../scenarios.ts";
import { configurationFor } from "./configuration.ts";
import { httpGet } from "./http.ts";
import type { Namespace } from "./netns.ts";
import type { ProgramUnderTest } from "./story.ts";
import type { World } from "./world.ts";

/**
 * `pace`: how long and how often to poll for the first sync, on slow machines. `iptables`: added to what a scenario sets
 * for that mode.
 */
export function kubeProxyProgram(
  program: string,
  mode: Mode | "ipvs",
  pace?: Pace,
  iptables: Readonly<Record<string, unknown>> = {},
): ProgramUnderTest {
  type Run = { readonly proxy: Awaited<ReturnType<typeof startProxy>>; objects: readonly KubeObject[] };
  let run: (Run & { readonly settings: ScenarioSettings }) | null = null;
  const start = async (world: World, objects: readonly KubeObject[], settings: ScenarioSettings) => {
    const foothold = enter(world.node);
    const scenario = configurationFor(mode, settings);
    const configuration = { ...scenario, iptables: { ...(scenario.iptables as object), ...iptables } };
    const proxy = await startProxy(foothold, program, configuration, nodeName, objects);
    run = { proxy, objects, settings };
    await proxy.ready(pace);
  };
  const stop = async () => {
    await run?.proxy.stop();
    run = null;
  };
  return {
    name: mode,
    apply: start,
    clear: stop,
    async update(world, objects) {
      if (run === null) throw new Error(`${program} does not run`);
      const since = Date.now() / 1000;
      const isNews = JSON.stringify(run.objects) !== JSON.stringify(objects);
      replaceObjects(run.proxy.api, objects);
      run.objects = objects;
      // Nearly all changes are queued; on a busy machine they may take a while to arrive.
      const quiet = isNews ? 10 : 0;
      await caughtUp(world.node, since, quiet, pace ?? { timeoutMs: 60_000, everyMs: 60 });
    },
    async restart(world) {
      if (run === null) throw new Error(`${program} does not run`);
      const { objects, settings } = run;
      await stop();
      await start(world, objects, settings);
    },
  };
}

type Pace = { readonly timeoutMs: number; readonly everyMs: number };

/** Resolves when everything queued since then is synced, or when nothing was queued for this many seconds. */
export async function caughtUp(
  node: Namespace,
  since: number,
  quiet: number,
  { timeoutMs, everyMs }: Pace,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  let calmSince = Date.now();
  let last: SyncMetrics | null = null;
  for (;;) {
    const metrics = readSyncMetrics(
      (await httpGet(node, "http://127.0.0.1:10249/metrics"))?.body ?? "",
      last,
    );
    const isQueued = metrics.some(({ queued }) => queued >= since) || Date.now() / 1000 > since + quiet;
    const isLate = !isQueued || metrics.some(({ queued, ended }) => ended < queued);
    const hasMoved = last !== null && metrics.some(({ count }, family) => count !== last![family]!.count);
    if (isLate || hasMoved) calmSince = Date.now();
    if (Date.now() - calmSince >= calmNeeded(metrics)) return;
    if (Date.now() > deadline) throw new Error(`The proxy has not caught up in ${timeoutMs} ms`);
    last = metrics;
    await sleep(everyMs);
  }
}

/** The sync metrics of each family; times in seconds. */
type SyncMetrics = readonly {
  readonly queued: number;
  readonly ended: number;
  readonly count: number;
  readonly sum: number;
  /** When the last one began, if we saw it end. */
  readonly began: number | null;
}[];

function readSyncMetrics(metrics: string, before: SyncMetrics | null): SyncMetrics {
  return ["IPv4", "IPv6"].map((name, family) => {
    const sample = (metric: string) => {
      const line = new RegExp(`^kubeproxy_sync_proxy_rules_${metric}{ip_family="${name}"} (.*)$`, "m");
      return Number(line.exec(metrics)?.[1] ?? 0);
    };
    const [ended, count, sum] = [
      sample("last_timestamp_seconds"),
      sample("duration_seconds_count"),
      sample("duration_seconds_sum"),
    ];
    const known = before?.[family];
    const took = known === undefined || count === known.count ? null : sum - known.sum;
    const began = took === null ? (known?.began ?? null) : ended - took;
    return { queued: sample("last_queued_timestamp_seconds"), ended, count, sum, began };
  });
}

/**
 * In milliseconds. What is queued during a sync is done by the next one, and of that nothing shows before its end: unless
 * the last one is known to have begun after everything queued, or syncs are short, one waits for as long as one takes.
 */
function calmNeeded(metrics: SyncMetrics): number {
  const usual = Math.max(...metrics.map(({ sum, count }) => sum / Math.max(1, count)));
  const hasBegunAfter = metrics.every(({ queued, began }) => began !== null && began > queued);
  return usual < 1 || hasBegunAfter ? 250 : 1500 * usual;
}
