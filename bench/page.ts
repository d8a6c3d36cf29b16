// The page with 10,000 Services of 10 endpoints: first view, filters, memory of the tab, and what it costs the daemon.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import { queryDaemon } from "../src/observe/status/client.ts";
import { createNamespace, type Namespace, reasonToSkip } from "../test/kernel/netns.ts";
import { clusterOf, endpointAddress, nodeName, serviceObject, sliceObject } from "./lib/cluster.ts";
import { median, publish, type Row } from "./lib/measure.ts";
import { cpuSeconds, residentMiB } from "./lib/usage.ts";

const size = { services: 10_000, endpoints: 10 };
const turnout = join(process.cwd(), "bin", "turnout");
const folder = mkdtempSync(join(tmpdir(), "turnout-bench-page-"));
const socket = join(folder, "status.sock");
const objects = join(folder, "objects");
const rows: Row[] = [];
const rounds = 5;

main()
  .catch((error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  })
  .finally(() => rmSync(folder, { recursive: true, force: true }));

async function main(): Promise<void> {
  const reason = reasonToSkip();
  if (reason !== null) return console.log(`  skipped: ${reason}`);
  const netns = createNamespace("bench-page");
  netns.ip(
    "link set lo up",
    "link add eth0 type veth peer name other",
    "link set eth0 up",
    "addr add 192.168.0.2/24 dev eth0",
  );
  const started: ChildProcess[] = [];
  let browser: Browser | null = null;
  try {
    write();
    started.push(startDaemon(netns));
    const { pid } = await synced();
    await withoutPage(pid);
    const { url, process: server } = await startPage();
    started.push(server);
    browser = await openBrowser();
    await withPage(browser, url, pid);
  } finally {
    // Also what was measured before a failure.
    publish(rows);
    await browser?.close();
    for (const each of started.toReversed()) {
      const ended = new Promise((resolve) => each.once("exit", resolve));
      each.kill();
      await ended;
    }
    netns.remove();
  }
}

async function withoutPage(pid: number): Promise<void> {
  rows.push({ what: "a Sync of one change, no page", value: await changeMs(), unit: "ms" });
  rows.push({ what: "memory of the daemon, no page", value: residentMiB(pid), unit: "MiB" });
  rows.push({ what: "CPU of the daemon, idle, no page", value: await cpuPercent(pid), unit: "%" });
}

async function withPage(browser: Browser, url: string, pid: number): Promise<void> {
  const slowest = watchAnswers();
  const tab = await (await browser.newContext({ viewport: { width: 1400, height: 900 } })).newPage();
  const opened = performance.now();
  await tab.goto(url);
  await tab.waitForSelector(".list tbody a");
  rows.push({ what: "first view after open", value: performance.now() - opened, unit: "ms", limit: 1_500 });
  await tab.waitForSelector("footer:has-text('10,001 Services')");
  rows.push({ what: "longest wait for a status meanwhile", value: await slowest(), unit: "ms" });
  await filters(tab);
  rows.push({
    what: "CPU of the daemon, idle, page open",
    value: await cpuPercent(pid),
    unit: "%",
    limit: 2,
  });
  rows.push({ what: "a Sync of one change, page open", value: await changeMs(), unit: "ms" });
  rows.push({ what: "memory of the daemon, page open", value: residentMiB(pid), unit: "MiB" });
  rows.push({ what: "memory of the tab", value: await tabMiB(browser), unit: "MiB", limit: 150 });
  rows.push({ what: "a change until it is visible", value: await visibleMs(tab), unit: "ms", limit: 1_000 });
}

/** From the change of the address until other rows are drawn, in the page itself. */
async function filters(tab: Page): Promise<void> {
  for (const [what, query, first] of [
    ["filter by namespace", "namespace=ns-7", "ns-7/"],
    ["filter by text", "q=service-9999", "service-9999"],
    ["filter by endpoint address", "q=10.1.2.3", ""],
  ] as const) {
    const times: number[] = [];
    for (let i = 0; i < rounds; i++) {
      await show(tab, "#/services", "");
      times.push(await show(tab, `#/services?${query}`, first));
    }
    rows.push({ what, value: median(times), unit: "ms", limit: 100 });
  }
}

/** Resolves when the rows changed and were drawn. */
function show(tab: Page, hash: string, first: string): Promise<number> {
  return tab.evaluate(`new Promise((resolve) => {
    const totals = () => document.querySelector("footer").textContent;
    const before = totals();
    const isShown = location.hash === ${JSON.stringify(hash)};
    const started = performance.now();
    location.hash = ${JSON.stringify(hash)};
    const check = () => {
      const name = document.querySelector(".list tbody a")?.textContent ?? "";
      if ((isShown || totals() !== before) && name.includes(${JSON.stringify(first)})) resolve(performance.now() - started);
      else requestAnimationFrame(check);
    };
    requestAnimationFrame(check);
  })`);
}

/** The longest time that the daemon takes to answer something else: how long it is busy at a time. */
function watchAnswers(): () => Promise<number> {
  let isOver = false;
  let longest = 0;
  const watching = (async () => {
    while (!isOver) {
      const started = performance.now();
      await queryDaemon(socket, "/relays").catch(() => null);
      longest = Math.max(longest, performance.now() - started);
      await sleep(5);
    }
  })();
  return async () => {
    isOver = true;
    await watching;
    return longest;
  };
}

const idleSeconds = 10;

async function cpuPercent(pid: number): Promise<number> {
  await sleep(2_000);
  const before = cpuSeconds(pid);
  await sleep(idleSeconds * 1_000);
  return (100 * (cpuSeconds(pid) - before)) / idleSeconds;
}

let generation = 0;

/** Duration of the Sync that follows a change of one Service. */
async function changeMs(): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const before = (await queryDaemon(socket, "/")).syncs[0]!.finishedAt;
    change();
    let last = (await queryDaemon(socket, "/")).syncs.find(({ operations }) => operations > 0)!;
    while (last.finishedAt <= before) {
      await sleep(20);
      last = (await queryDaemon(socket, "/")).syncs.find(({ operations }) => operations > 0)!;
    }
    times.push(last.finishedAt - last.startedAt);
  }
  return median(times);
}

/** Moves one Service to other endpoints. */
function change(): void {
  generation = generation === 0 ? 1 : 0;
  writeFileSync(join(objects, "changed.json"), JSON.stringify(sliceObject(1, size.endpoints, generation)));
}

/** From the file that changes until the Service's picture has the new endpoints. */
async function visibleMs(tab: Page): Promise<number> {
  const { name, namespace } = serviceObject(1).metadata;
  await tab.evaluate(`location.hash = "#/services?service=${namespace}/${name}"`);
  await tab.waitForSelector(`.picture :text("${endpointAddress(1, 0, generation)}")`);
  const times: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const started = performance.now();
    change();
    await tab.waitForSelector(`.picture :text("${endpointAddress(1, 0, generation)}")`);
    times.push(performance.now() - started);
  }
  return median(times);
}

async function tabMiB(browser: Browser): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const own = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => privateMiB(id));
  return Math.max(...own);
}

/** Without what it shares with other processes of the browser. */
function privateMiB(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0) / 1024;
}

function write(): void {
  const list = (items: readonly object[]) => JSON.stringify({ apiVersion: "v1", kind: "List", items });
  const isApart = ({ metadata }: { readonly metadata: { readonly name?: unknown } }) =>
    metadata.name === sliceObject(1, 1).metadata.name;
  const all = clusterOf(size);
  mkdirSync(objects, { recursive: true });
  writeFileSync(join(objects, "all.json"), list(all.filter((object) => !isApart(object))));
  writeFileSync(join(objects, "changed.json"), JSON.stringify(sliceObject(1, size.endpoints, generation)));
  // A Service without endpoints is at the top.
  writeFileSync(join(objects, "empty.json"), JSON.stringify(serviceObject(size.services + 1)));
}

function startDaemon(netns: Namespace): ChildProcess {
  const flags = [
    `--source=files:${objects}`,
    `--status-socket=${socket}`,
    `--hostname-override=${nodeName}`,
    "--mode=nftables",
    "--detect-local-mode=NodeCIDR",
    "--conntrack-max-per-core=0",
    "--conntrack-min=0",
  ];
  return spawn("ip", ["netns", "exec", netns.name, turnout, "run", ...flags], { stdio: "ignore" });
}

async function synced() {
  for (let tries = 0; tries < 240; tries++) {
    const status = await queryDaemon(socket, "/").catch(() => null);
    if (status?.syncs.some(({ servicePorts }) => servicePorts >= size.services)) return status;
    await sleep(250);
  }
  throw new Error("The daemon did not sync within a minute");
}

async function startPage(): Promise<{ readonly url: string; readonly process: ChildProcess }> {
  const server = spawn(turnout, ["page", `--source=daemon:${socket}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const text of server.stdout.setEncoding("utf8"))
    return { url: String(text).trim(), process: server };
  throw new Error("turnout page printed no URL");
}

function openBrowser(): Promise<Browser> {
  const require = createRequire(join(process.cwd(), "package.json"));
  const { chromium } = require("playwright-core") as typeof import("playwright-core");
  return chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
}
