// A kube-proxy program, the real one or ours, run on the node of the world and judged by packets and stories.
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
 * `pace`: how long and how often to look for the first sync, on slow machines. `iptables`: added to what a scenario sets
 * for that mode.
 */
export function kubeProxyProgram(
  program: string,
  mode: Mode | "ipvs",
  pace?: { readonly patienceMs: number; readonly everyMs: number },
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
      // Nearly all news are queued; on a busy machine they may take a while to arrive.
      const quiet = isNews ? (pace === undefined ? 2 : 10) : 0;
      await caughtUp(world.node, since, quiet, pace?.patienceMs ?? 20_000);
    },
    async restart(world) {
      if (run === null) throw new Error(`${program} does not run`);
      const { objects, settings } = run;
      await stop();
      await start(world, objects, settings);
    },
  };
}

/** Resolves when everything queued since then is synced, or when nothing was queued for so many seconds. */
export async function caughtUp(
  node: Namespace,
  since: number,
  quiet: number,
  patienceMs: number,
): Promise<void> {
  const deadline = Date.now() + patienceMs;
  let calmSince = Date.now();
  let [calmMs, last] = [250, ""];
  for (; Date.now() - calmSince < calmMs; await sleep(20)) {
    const { body = "" } = (await httpGet(node, "http://127.0.0.1:10249/metrics")) ?? {};
    const queued = samples(body, "last_queued_timestamp_seconds");
    const synced = samples(body, "last_timestamp_seconds");
    const isQueued = queued.some((at) => at >= since) || Date.now() / 1000 > since + quiet;
    const isBehind = !isQueued || queued.some((at, family) => (synced[family] ?? 0) < at);
    // What was queued during a sync is done by the next one; of a long one nothing shows before its end.
    if (isBehind || synced.join() !== last) calmSince = Date.now();
    last = synced.join();
    calmMs = usualSync(body) < 1 ? 250 : 1500 * usualSync(body);
    if (Date.now() > deadline) throw new Error(`The proxy has not caught up in ${patienceMs} ms`);
  }
}

/** How long one takes on average, in the slower family, in seconds. */
function usualSync(metrics: string): number {
  const counts = samples(metrics, "duration_seconds_count");
  const sums = samples(metrics, "duration_seconds_sum");
  return Math.max(...sums.map((sum, family) => sum / Math.max(1, counts[family]!)));
}

/** Of each family. */
function samples(metrics: string, name: string): number[] {
  return ["IPv4", "IPv6"].map((family) => {
    const line = new RegExp(`^kubeproxy_sync_proxy_rules_${name}{ip_family="${family}"} (.*)$`, "m");
    return Number(line.exec(metrics)?.[1] ?? 0);
  });
}
