// Hours of trouble in little time: restarts, 410s, 429s, hung and cut watches, flushed rules, and a cluster in motion.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Fault, RequestMatch } from "../../src/playground/api/faults.ts";
import { endpoint, service, slice } from "../objects.ts";
import type { KubeObject } from "../reference/objects.ts";
import { eventually, nodeObject, openSite, reasonNotToRun, type Site } from "./site.ts";

const reason = reasonNotToRun();
const seconds = Number(process.env.TURNOUT_SOAK_SECONDS ?? 12);
const services = 40;

const faults: readonly Fault[] = [
  { kind: "status", code: 410 },
  { kind: "status", code: 429, retryAfter: 1 },
  { kind: "status", code: 500 },
  { kind: "status", code: 503 },
  { kind: "hang" },
  { kind: "drop" },
  { kind: "body", contentType: "text/html", text: "<html>a proxy in between</html>" },
  { kind: "prelude", text: '{"type":"ADDED","object":\n' },
  { kind: "ignore-initial-events" },
  { kind: "reset", afterBytes: 300 },
  { kind: "truncate", afterBytes: 500 },
  { kind: "silent" },
  { kind: "drip", bytes: 40, everyMs: 5 },
];
const resources = ["services", "endpointslices", "nodes", "servicecidrs", "events"];

it(`${seconds} s of faults: it lives on, stays small, and the kernel ends up right`, {
  timeout: (seconds + 180) * 1000,
}, async ({ skip }) => {
  if (reason !== null) return skip(reason);
  const site = await openSite();
  try {
    await site.openApi();
    site.api.put(nodeObject());
    const daemon = site.start({ args: ["-v=0"] });
    await daemon.ready();
    const early = residentMiB(daemon.pid);
    for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(20 + Math.random() * 80))
      await trouble(site);
    site.api.faults.clear();
    // Requests that hang are noticed after minutes: end them.
    site.api.dropConnections();
    for (let n = 0; n < services; n++) change(site, n);
    site.api.put(numbered("Service", services, service({ clusterIP: "172.30.1.1" })));
    const reached = () => site.netns.run("nft", "list", "ruleset").includes("172.30.1.1");
    await eventually(reached, "the last Service", 120_000);
    expect(wrongWords(daemon.log())).toEqual([]);
    expect(daemon.running()).toBe(true);
    expect(residentMiB(daemon.pid)).toBeLessThan(Math.max(2 * early, early + 100));
    await settled(site);
    const incremental = words(site);
    daemon.kill("SIGKILL");
    await daemon.ended();
    site.netns.run("nft", "flush", "ruleset");
    const fresh = site.start();
    await fresh.ready();
    expect(incremental).toEqual(words(site));
  } finally {
    await site.close();
  }
});

async function trouble(site: Site): Promise<void> {
  for (let i = 0; i < 3; i++) change(site, any(services));
  const dice = any(100);
  if (dice < 25) {
    const match: RequestMatch = { resource: resources[any(resources.length)]! };
    site.api.faults.arm(match, faults[any(faults.length)]!, 1 + any(3));
  } else if (dice < 35) site.api.dropConnections();
  else if (dice < 37) {
    await site.api.close();
    await sleep(any(300));
    await site.openApi();
  } else if (dice < 39) site.netns.run("nft", "flush", "ruleset");
}

/** Adds, changes or removes a Service or its endpoints. */
function change(site: Site, n: number): void {
  const { api } = site;
  const exists = api.list("Service").some(({ metadata }) => metadata.name === `web-${n}`);
  if (exists && any(4) === 0) {
    api.remove("Service", "shop", `web-${n}`);
    return;
  }
  if (!exists) api.put(numbered("Service", n, service({ clusterIP: `172.30.0.${n + 1}` })));
  const endpoints = Array.from({ length: any(5) }, () => endpoint(`10.180.${any(4)}.${1 + any(200)}`));
  api.put(numbered("EndpointSlice", n, slice(endpoints)));
}

function numbered(kind: "Service" | "EndpointSlice", n: number, fields: object): KubeObject {
  const metadata = {
    namespace: "shop",
    name: `web-${n}`,
    labels: kind === "Service" ? {} : { "kubernetes.io/service-name": `web-${n}` },
  };
  const apiVersion = kind === "Service" ? "v1" : "discovery.k8s.io/v1";
  return { apiVersion, kind, ...fields, metadata } as unknown as KubeObject;
}

/** Everything in the kernel, whatever the order of elements. */
function words(site: Site): readonly string[] {
  return site.netns
    .run("nft", "list", "ruleset")
    .split(/[\s,]+/)
    .sort();
}

async function settled(site: Site): Promise<void> {
  for (let last = ""; ; ) {
    const now = words(site).join(" ");
    if (now === last) return;
    last = now;
    await sleep(1500);
  }
}

function wrongWords(log: string): readonly string[] {
  return log.split("\n").filter((line) => /command failed|unhandled|TypeError|at .*\.cjs/i.test(line));
}

function residentMiB(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) / 1024;
}

function any(below: number): number {
  return Math.floor(Math.random() * below);
}
