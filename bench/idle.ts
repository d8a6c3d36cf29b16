// The idle daemon beside the real kube-proxy: memory, and CPU while nothing happens but probes.

import { setTimeout as sleep } from "node:timers/promises";
import { enter } from "../test/reference/foothold.ts";
import { type Mode, startProxy } from "../test/reference/proxy.ts";
import { clusterOf, nodeName, type Size, sizeText } from "./lib/cluster.ts";
import { publish, type Row } from "./lib/measure.ts";
import { cachedProtobuf } from "./lib/protobuf.ts";
import { onStage, programs, startAsRoot } from "./lib/run.ts";
import type { Stage } from "./lib/stage.ts";
import { cpuSeconds, residentMiB } from "./lib/usage.ts";

const seconds = Number(process.env.TURNOUT_IDLE_SECONDS ?? 15);
const sizes: readonly Size[] = [
  { services: 100, endpoints: 2 },
  { services: 500, endpoints: 2 },
];

startAsRoot(async () => {
  const chosen = programs();
  const rows: Row[] = [];
  await onStage(async (stage) => {
    for (const mode of ["nftables", "iptables"] as const)
      for (const size of sizes)
        for (const [who, program] of chosen) {
          const what = `${mode}, ${sizeText(size)}, ${who}`;
          const { rss, cpu } = await idle(stage, program, mode, size);
          rows.push({ what: `${what}: RSS`, value: rss, unit: "MiB" });
          rows.push({ what: `${what}: CPU`, value: cpu, unit: "ms/s" });
        }
  });
  publish(rows);
});

/** Probed and scraped as in a cluster, but ten times as often. */
async function idle(
  stage: Stage,
  program: string,
  mode: Mode,
  size: Size,
): Promise<{ rss: number; cpu: number }> {
  const foothold = enter(stage.node);
  const configuration = { mode, detectLocalMode: "ClusterCIDR", clusterCIDR: "10.0.0.0/8" };
  const proxy = await startProxy(
    foothold,
    program,
    configuration,
    nodeName,
    clusterOf(size),
    cachedProtobuf(),
  );
  try {
    await proxy.ready();
    await sleep(5000);
    const before = cpuSeconds(proxy.pid);
    for (let second = 0; second < seconds; second++) {
      await foothold.get("http://127.0.0.1:10256/livez");
      await sleep(1000);
    }
    return { rss: residentMiB(proxy.pid), cpu: ((cpuSeconds(proxy.pid) - before) / seconds) * 1000 };
  } finally {
    await proxy.stop();
    await foothold.leave();
    stage.sweep();
  }
}
