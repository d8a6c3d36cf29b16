// Slow: a restart with nothing changed, and `nft flush ruleset`, beside the real kube-proxy: CPU, kernel writes, and how long connections fail.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { enter } from "../test/reference/foothold.ts";
import { type RunningProxy, startProxy } from "../test/reference/proxy.ts";
import { clusterOf, nodeName, type Size, serviceAddress, sizeText } from "./lib/cluster.ts";
import { configurationOf, untilReached } from "./lib/figures.ts";
import { publish, type Row } from "./lib/measure.ts";
import { cachedProtobuf } from "./lib/protobuf.ts";
import { onStage, programs, startAsRoot } from "./lib/run.ts";
import type { Stage } from "./lib/stage.ts";
import { cpuSeconds } from "./lib/usage.ts";

const patience = Number(process.env.TURNOUT_PATIENCE ?? 120);
const rounds = Number(process.env.TURNOUT_ROUNDS ?? 3);
/** A flush that is not repaired within this many seconds counts as this long. */
const flushSeconds = 20;
const size: Size = { services: 10_000, endpoints: 10 };
/** A process that used no more CPU than this, in seconds, within so many milliseconds is at rest. */
const [restCpu, restMs] = [0.003, 150];
const limits = { cpu: 0.8, writes: 0, gap: 150 };

startAsRoot(async () => {
  const rows: Row[] = [];
  await onStage(async (stage) => {
    for (let round = 0; round < rounds; round++)
      for (const [name, program] of programs()) rows.push(...(await measure(stage, name, program)));
  });
  publish(rows);
});

async function measure(stage: Stage, name: string, program: string): Promise<readonly Row[]> {
  const foothold = enter(stage.node);
  const title = `${name}, nftables, ${sizeText(size)}`;
  const start = () =>
    startProxy(foothold, program, configurationOf("nftables"), nodeName, clusterOf(size), cachedProtobuf());
  try {
    const first = await start();
    const ready = await untilReached(stage, size.services - 1, size, 0, patience);
    await first.ready();
    await first.stop();
    if (ready === null) throw new Error(`${title}: not ready after ${patience} s`);
    const monitor = watchRules(stage);
    const second = await start();
    try {
      const cpu = await cpuUntilReady(second);
      await sleep(1000);
      const writes = await monitor.stop();
      const gap = await gapAfterFlush(stage);
      return [
        { what: `${title}: restart, CPU`, value: cpu, unit: "s", limit: limits.cpu },
        { what: `${title}: restart, kernel events`, value: writes, unit: "", limit: limits.writes },
        { what: `${title}: flush, longest gap`, value: gap, unit: "ms", limit: limits.gap },
      ];
    } finally {
      await monitor.stop();
      await second.stop();
    }
  } finally {
    await foothold.leave();
    stage.sweep();
  }
}

/** In seconds. Only a process at rest is asked: an answer to /metrics costs milliseconds, which would count as CPU of the restart. */
async function cpuUntilReady(proxy: RunningProxy): Promise<number> {
  const deadline = performance.now() + patience * 1000;
  for (let before = cpuSeconds(proxy.pid); performance.now() < deadline; ) {
    await sleep(restMs);
    const cpu = cpuSeconds(proxy.pid);
    if (cpu - before < restCpu && (await proxy.synced())) return cpu;
    before = cpu;
  }
  throw new Error(`not ready ${patience} s after a restart`);
}

/** Counts what the kernel reports about changes of rules: one line each, as `nft monitor` prints them. */
function watchRules(stage: Stage): { stop(): Promise<number> } {
  const child = stage.node.inside(() => spawn("nft", ["monitor"], { stdio: ["ignore", "pipe", "ignore"] }));
  let lines = 0;
  const closed = once(child, "close");
  child.stdout.on("data", (chunk: Buffer) => {
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines++;
  });
  return {
    async stop() {
      child.kill();
      await closed;
      return lines;
    },
  };
}

/** Milliseconds between the last connection before the rules are gone and the first one after; the Service is in use. */
async function gapAfterFlush(stage: Stage): Promise<number> {
  const address = serviceAddress(size.services >> 1);
  for (let i = 0; i < 100; i++) await stage.reach(address, 80);
  stage.node.run("nft", "flush", "ruleset");
  const started = performance.now();
  for (;;) {
    const reached = await stage.reach(address, 80);
    const passed = performance.now() - started;
    if (reached !== null || passed > flushSeconds * 1000) return passed;
    await sleep(1);
  }
}
