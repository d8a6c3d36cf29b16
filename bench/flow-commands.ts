// turnout flows and doctor flows: time and peak memory with 200,000 flows in the kernel; CPU and heap for a million replayed, among 10,000 Services.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flowsIn } from "../src/host/netlink/conntrack.ts";
import type { Datagram } from "../src/host/netlink/dump.ts";
import type { FlowView } from "../src/model/flow.ts";
import { nftablesBehavior } from "../src/modes/nftables/behavior.ts";
import { attributor } from "../src/traffic/attribute.ts";
import { findingOf } from "../src/traffic/classify.ts";
import { eligibilityReader } from "../src/traffic/eligibility.ts";
import { rowOf } from "../src/traffic/flow-row.ts";
import { keptAliveByEntry } from "../src/traffic/kept-alive.ts";
import { FlowFindings } from "../src/traffic/report.ts";
import { insertFlows } from "../test/kernel/insert-flows.ts";
import { createNamespace, type Namespace } from "../test/kernel/netns.ts";
import { dnsObjects } from "../test/support/dns-objects.ts";
import { endpoint, routed, servicePort } from "../test/support/routed.ts";
import { publish, type Row } from "./lib/measure.ts";
import { recordFlows, replay } from "./lib/recorded-flows.ts";
import { startAsRoot } from "./lib/run.ts";

const flows = 200_000;
const services = 10_000;
/** A process of Node.js that does nothing has about 45 MB. */
const mostMemoryMB = 160;

startAsRoot(async () => {
  const netns = createNamespace("bench-flow-commands");
  const folder = mkdtempSync(join(tmpdir(), "turnout-bench-flows-"));
  const rows: Row[] = [];
  try {
    await insertFlows(netns, flows);
    writeFileSync(join(folder, "cluster.json"), JSON.stringify(cluster));
    const commands = [["flows"], ["flows", "--by=endpoint"], ["doctor", "flows", "--wait=0"]];
    for (const argv of commands) rows.push(...(await measured(netns, folder, argv)));
    rows.push(...(await replayed(await recordFlows(netns), 5)));
  } finally {
    netns.remove();
    rmSync(folder, { recursive: true });
  }
  publish(rows);
});

async function measured(netns: Namespace, folder: string, argv: readonly string[]): Promise<Row[]> {
  const start = performance.now();
  const line = ["bin/turnout", ...argv, `--source=files:${folder}`, "--node=node-a", "-o", "json"];
  const child = spawn("nsenter", [`--net=${netns.path}`, ...line], { stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  child.stdout.on("data", (some) => (out += String(some)));
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, peakOf(child.pid!));
  }, 5);
  await new Promise((resolve) => child.once("close", resolve));
  clearInterval(timer);
  const answer = JSON.parse(out) as { examined?: number; flows?: unknown };
  const seen = answer.examined ?? answer.flows;
  if (seen !== flows) throw new Error(`${String(seen)} flows examined, not ${flows}`);
  const title = `${flows.toLocaleString("en")} flows: turnout ${argv.join(" ")}`;
  return [
    { what: title, value: performance.now() - start, unit: "ms" },
    { what: `${title}: peak memory`, value: peak, unit: "MB", limit: mostMemoryMB },
  ];
}

/** MB; 0 when the process has ended. */
function peakOf(pid: number): number {
  try {
    return Number(/^VmHWM:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1000;
  } catch {
    return 0;
  }
}

async function replayed(datagrams: readonly Datagram[], times: number): Promise<Row[]> {
  const ports = Array.from({ length: services }, (_, n) =>
    servicePort(`shop/web-${n}`, {
      clusterIP: `172.31.${n >> 8}.${n & 255}`,
      endpoints: [endpoint("10.0.2.1:80")],
    }),
  );
  const dns = {
    protocol: "udp",
    port: 53,
    clusterIP: "172.30.0.10",
    endpoints: [endpoint("10.0.1.6:53")],
  } as const;
  const routes = routed([...ports, servicePort("kube-system/dns", dns)]);
  const attribute = attributor(routes, nftablesBehavior, { conntrack: "shared" });
  const eligibilityOf = eligibilityReader(routes, nftablesBehavior);
  const keptAlive = keptAliveByEntry(0);
  const findings = new FlowFindings();
  let examined = 0;
  const select = (flow: FlowView) => {
    examined++;
    const attribution = attribute(flow);
    const finding = findingOf(flow, attribution, eligibilityOf, keptAlive);
    findings.add(flow, attribution, finding, () => rowOf(flow, attribution, { eligibilityOf, now: 0 }));
    return false;
  };
  globalThis.gc?.();
  const [heap, cpu] = [process.memoryUsage().heapUsed, process.cpuUsage()];
  for await (const _ of flowsIn(replay(datagrams, times), { family: "ipv4", select }));
  const { user, system } = process.cpuUsage(cpu);
  globalThis.gc?.();
  const kept = (process.memoryUsage().heapUsed - heap) / 1e6;
  const facts = { entries: examined, maxEntries: null, insertFailed: 0, drop: 0, earlyDrop: 0 };
  const [gone] = findings.report(facts, null).classes;
  if (gone!.count !== examined) throw new Error(`${gone!.count} of ${examined} flows found`);
  const title = `${examined.toLocaleString("en")} flows, replayed, classified`;
  return [
    { what: `${title}: CPU`, value: (user + system) / 1000, unit: "ms" },
    { what: `${title}: heap kept`, value: kept, unit: "MB", limit: 4 },
  ];
}

const cluster = {
  kind: "List",
  apiVersion: "v1",
  items: [...dnsObjects],
};
