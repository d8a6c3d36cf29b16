// Slow: steady changes, 20 and 100 a second, beside the real kube-proxy: latency from event to packet, CPU, and new Services.

import { setTimeout as sleep } from "node:timers/promises";
import { enter } from "../test/reference/foothold.ts";
import { type Mode, startProxy } from "../test/reference/proxy.ts";
import { type Churn, churn, churnCluster } from "./lib/churn.ts";
import { nodeName, type Size, sizeText } from "./lib/cluster.ts";
import { addMany, configurationOf, untilReached } from "./lib/figures.ts";
import { median, publish, type Row } from "./lib/measure.ts";
import { cachedProtobuf } from "./lib/protobuf.ts";
import { onStage, programs, startAsRoot } from "./lib/run.ts";
import type { Stage } from "./lib/stage.ts";

const seconds = Number(process.env.TURNOUT_CHURN_SECONDS ?? 60);
const rounds = Number(process.env.TURNOUT_ROUNDS ?? 3);
const patience = Number(process.env.TURNOUT_PATIENCE ?? 120);
const who = process.env.TURNOUT_CHURN_PROGRAMS ?? "kube-proxy turnout";
const [mode, size] = parseSize(process.env.TURNOUT_SIZE ?? "nftables:10000x10");

/** With the latencies that are wanted at 10,000 × 10 in nftables mode, in milliseconds. */
const phases = [
  { changesPerSecond: 20, protocol: "tcp", p50: 5, p99: 25 },
  { changesPerSecond: 100, protocol: "tcp", p50: 10, p99: 40 },
  { changesPerSecond: 20, protocol: "udp", p50: 5, p99: 25 },
] as const;
type Phase = (typeof phases)[number];
const wantedAdd = 15;
const wantedCpu = 2;

startAsRoot(async () => {
  const chosen = programs().filter(([name]) => who.includes(name));
  const rows: Row[] = [];
  await onStage(async (stage) => {
    for (let round = 0; round < rounds; round++)
      for (const [name, program] of chosen) rows.push(...(await measure(stage, name, program)));
  });
  publish(rows);
});

async function measure(stage: Stage, name: string, program: string): Promise<Row[]> {
  const foothold = enter(stage.node);
  const proxy = await startProxy(
    foothold,
    program,
    configurationOf(mode),
    nodeName,
    churnCluster(size),
    cachedProtobuf(),
  );
  const title = `${name}, ${mode}, ${sizeText(size)}`;
  try {
    const ready = await untilReached(stage, size.services - 1, size, 0, patience);
    if (ready === null) throw new Error(`${title}: not ready after ${patience} s`);
    const rows: Row[] = [];
    for (const [i, phase] of phases.entries()) {
      await sleep(5000);
      const figures = await churn(stage, proxy, size, { ...phase, seconds, generation: i + 1 });
      rows.push(...rowsOf(`${name}, ${phase.changesPerSecond}/s ${phase.protocol}`, figures, phase));
    }
    await sleep(5000);
    const add = median(await addMany(stage, proxy, size, 5)) * 1000;
    return [...rows, { what: `${name}, new Service: p50`, value: add, unit: "ms", limit: wantedAdd }];
  } finally {
    await proxy.stop();
    await foothold.leave();
    stage.sweep();
  }
}

function rowsOf(title: string, { p50, p99, max, cpuPerChange, lost }: Churn, phase: Phase): Row[] {
  return [
    { what: `${title}: p50`, value: p50, unit: "ms", limit: phase.p50 },
    { what: `${title}: p99`, value: p99, unit: "ms", limit: phase.p99 },
    { what: `${title}: max`, value: max, unit: "ms" },
    { what: `${title}: CPU per change`, value: cpuPerChange, unit: "ms", limit: wantedCpu },
    ...(lost === 0 ? [] : [{ what: `${title}: lost`, value: lost, unit: "changes" }]),
  ];
}

function parseSize(text: string): readonly [Mode, Size] {
  const match = /^(nftables|iptables):(\d+)x(\d+)$/.exec(text);
  if (match === null) throw new Error(`Cannot read TURNOUT_SIZE: "${text}" is not like nftables:1000x10`);
  const [, mode, services, endpoints] = match;
  return [mode as Mode, { services: Number(services), endpoints: Number(endpoints) }];
}
