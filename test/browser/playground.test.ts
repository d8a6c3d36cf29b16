// The page of a playground in Chromium: what happens in a real kernel is visible as it happens.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { BrowserContext } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openPlaygroundPage } from "../../playground/page.ts";
import { status } from "../../src/cli/commands/status.ts";
import { whatif } from "../../src/cli/commands/whatif.ts";
import type { WhatIf } from "../../src/explain/what-if.ts";
import { changeLines } from "../../src/history/print.ts";
import { readHistory } from "../../src/inspect/history.ts";
import { queryDaemon } from "../../src/observe/status/client.ts";
import type { Status } from "../../src/observe/status/status.ts";
import type { PageFiles } from "../../src/page/files.ts";
import type { NodeView } from "../../src/page/json.ts";
import type { OpenPage } from "../../src/page/server.ts";
import { playgroundFor, reasonToSkipPlayground } from "../kernel/ground.ts";
import { outputOf } from "../support/command-output.ts";
import {
  closeBrowser,
  expectAccessible,
  freshFiles,
  goTo,
  leaveTab,
  missingBrowser,
  openBrowser,
  openTab,
  root,
  type Tab,
} from "./browser.ts";

const reason = missingBrowser ?? reasonToSkipPlayground();

describe("the page of a playground", () => {
  const place = playgroundFor("nftables", reason);
  let browser: BrowserContext;
  let files: PageFiles;
  let page: OpenPage;
  let tab: Tab;

  beforeAll(async () => {
    if (reason === null) [browser, files] = await Promise.all([openBrowser(), freshFiles()]);
  });
  afterAll(() => closeBrowser(browser));
  beforeEach(async () => {
    page = await openPlaygroundPage(place.playground, 0, files);
    tab = await openTab(browser, page.url);
    await tab.waitForSelector(".list tbody a");
  });
  afterEach(async () => {
    const complaints = tab?.complaints ?? [];
    await leaveTab(browser);
    await page?.close();
    if (complaints.length > 0) throw new Error(complaints.join("\n"));
  });

  const run = async (line: string) => {
    await tab.fill(".playground input", line);
    await tab.click(".playground button:has-text('Run')");
  };
  const text = (selector: string) => tab.locator(selector).first().textContent();
  const poll = <T>(read: () => Promise<T>) => {
    return expect.poll(read, { timeout: 20_000, interval: 20 });
  };

  // Within a second: `npm run bench page`.
  it("scaling a Deployment is visible without any action", async () => {
    await goTo(tab, "#/services?service=shop/web");
    await poll(() => text(".picture")).toContain("33.3 %");
    place.playground.scale("web", 4);
    await poll(() => text(".picture")).toContain("25 %");
    await poll(() => text(".picture")).toContain("web-4");
    place.playground.scale("web", 3);
    await poll(() => text(".picture")).toContain("33.3 %");
  });

  it("traffic is sent, and compared with the kernel", async () => {
    await run("send outside nodeport:30080 2");
    await poll(() => text(".output")).toMatch(/answered by web-\d/);
    await run("scale nothing 3");
    await poll(() => text(".output")).toContain('Deployment "nothing" not found');
    await goTo(tab, "#/packet?from=stock-1&to=svc/shop/web");
    await poll(() => text(".trace")).toContain("shop/web:http");
    await tab.click("button:has-text('Compare with the kernel')");
    await poll(() => text(".answer")).toContain("The kernel handles this packet as planned");
    expect(await text(".answer .steps")).toContain("@service-ips");
  });

  it("the node's view shows limits, Events, Syncs and latency as turnout status prints them", async () => {
    const socket = place.playground.statusSocketOf("node-a");
    const read = async () => {
      const { out } = await outputOf(status, `--source=daemon:${socket}`, "-o", "json");
      return JSON.parse(out) as Status;
    };
    place.playground.scale("web", 5);
    await poll(async () => (await read()).latency?.samples ?? 0).toBeGreaterThan(0);
    place.playground.scale("web", 3);
    expect(await place.playground.settled()).toBe(true);
    await goTo(tab, "#/node");
    await poll(async () => tab.locator('[aria-label="Latest Syncs"] tbody tr').count()).toBeGreaterThan(2);
    const readShown = async () => {
      const headers = { authorization: `Bearer ${page.token}` };
      const answer = await fetch(`http://127.0.0.1:${page.port}/api/node?node=node-a`, { headers });
      return ((await answer.json()) as NodeView).status!;
    };
    let [printed, shown] = [await read(), await readShown()];
    // Repeated while there is a Sync between the two.
    for (
      let after = await read();
      printed.syncs[0]!.finishedAt !== after.syncs[0]!.finishedAt;
      after = await read()
    )
      [printed, shown] = [after, await readShown()];
    for (const field of ["syncs", "events", "latency", "drift", "problems", "configuration"] as const)
      expect(shown[field]).toEqual(printed[field]);
    expect(shown.limits!.map(({ name, limit }) => [name, limit])).toEqual(
      printed.limits!.map(({ name, limit }) => [name, limit]),
    );
    const { p50, p99 } = printed.latency!;
    await poll(() => text("header")).toContain(`p50 ${Math.round(p50)} ms · p99 ${Math.round(p99)} ms`);
    const rows = tab.locator('[aria-label="Latest Syncs"] tbody tr');
    const caused = printed.syncs.find(({ objects }) => objects !== undefined)!;
    expect(caused.objects![0]).toMatch(/^EndpointSlice shop\/web-ipv[46] modified$/);
    await poll(async () => (await rows.allTextContents()).join("\n")).toContain(caused.objects!.join(", "));
    for (const [i, { operations, changedPorts }] of printed.syncs.slice(0, 3).entries())
      expect(await rows.nth(i).locator("td.number").allTextContents()).toEqual([
        String(changedPorts),
        String(operations),
        expect.stringMatching(/ms$/),
      ]);
    for (const { reason, delivery } of printed.events!)
      await poll(() => text('[aria-label="Kubernetes Events"]')).toMatch(
        new RegExp(`${reason}.*${delivery}`),
      );
    const conntrack = printed.limits!.find(({ name }) => name === "conntrack")!;
    expect(await text('[aria-label="Limits"]')).toContain(`of ${conntrack.limit} entries`);
    await expectAccessible(tab);
  });

  it("what-if takes names of pods, and offers nodes and zones", async () => {
    await goTo(tab, "#/packet?from=web-1&to=svc/shop/stock");
    await tab.click("summary:has-text('What if')");
    await tab.click('.choices button:has-text("zone a")');
    await poll(() => text(".compared")).toContain("This node would be gone");
    await tab.click('.choices button:has-text("zone a")');
    await tab.click('.choices button:has-text("pod stock-1")');
    await poll(() => text(".compared")).toContain("gone");
    const line = (await text(".what-if .command code"))!;
    const flags = line.split(" ").slice(2);
    expect(flags[0]).toMatch(/^--without=pod\/10\.0\.1\.\d+$/);
    // Other playgrounds may run on this machine.
    const here = flags.map((flag) =>
      flag === "--source=playground" ? `--source=playground:${process.pid}` : flag,
    );
    const { out, code, err } = await outputOf(whatif, ...here, "-o", "json");
    expect(err).toBe("");
    const rows = await tab.locator(".what-if tbody tr").allTextContents();
    const { changes } = JSON.parse(out) as WhatIf;
    expect([code, rows.length]).toEqual([0, changes.length]);
    for (const [i, { port, usable }] of changes.entries())
      for (const part of [port, `${usable.before} → ${usable.after}`]) expect(rows[i]).toContain(part);
    expect(changes[0]).toMatchObject({ port: "shop/stock:grpc", from: [{ hintsLost: true }] });
    expect(rows[0]).toContain("topology hints no longer hold");
  });

  it("a Service's history, traffic and flows are those that the tools print", async () => {
    const socket = place.playground.statusSocketOf("node-a");
    place.playground.scale("web", 4);
    await poll(() => text(".list tbody")).toContain("shop/web");
    await goTo(tab, "#/services?service=shop/web&tab=history");
    await poll(async () => tab.locator(".history li").count()).toBeGreaterThan(0);
    const lines = async () => {
      const { changes } = await readHistory(socket, { to: "svc/shop/web" });
      return changes
        .toReversed()
        .flatMap((change) => change.changes.flatMap(changeLines).map((line) => line.trim()));
    };
    await poll(async () => {
      const shown = await tab.locator(".history .line").allTextContents();
      return JSON.stringify(shown) === JSON.stringify(await lines());
    }).toBe(true);
    await goTo(tab, "#/services?service=shop/web&tab=traffic");
    await run("send stock-1 svc/shop/web 6");
    await poll(async () => {
      const report = (await queryDaemon(socket, "/traffic"))!;
      const own = report.ports.find(({ name }) => name === "web");
      const cells = await tab.locator(".traffic .wide tbody td:nth-child(5)").allTextContents();
      const printed = own?.endpoints.map(({ connections }) => String(connections)) ?? [];
      return printed.length > 0 && JSON.stringify(cells) === JSON.stringify(printed);
    }).toBe(true);
    await goTo(tab, "#/services?service=shop/web&tab=flows");
    await poll(() => text(".flows .summary")).toMatch(/\d+ flows/);
    const clients = await tab.locator(".flows tbody td:nth-child(2) code").allTextContents();
    const args = ["flows", "svc/shop/web", `--source=daemon:${socket}`, "--limit=1000", "-o", "json"];
    const { flows } = JSON.parse(execFileSync(join(root, "bin", "turnout"), args, { encoding: "utf8" })) as {
      flows: { client: string }[];
    };
    expect(clients.length).toBeGreaterThan(0);
    for (const client of clients) expect(flows.map((flow) => flow.client)).toContain(client);
    place.playground.scale("web", 3);
  });

  it("the elements of the kernel are shown beside each arrow", async () => {
    await goTo(tab, "#/services?service=shop/web");
    await tab.click('button:has-text("show the kernel\'s elements")');
    await poll(() => tab.locator(".arrows dt").count()).toBe(4);
    const [way, ...endpoints] = await tab.locator(".arrows dd").allTextContents();
    expect(way).toContain("@service-ips");
    const places = await tab.locator(".picture text.mono").allTextContents();
    for (const [i, title] of (await tab.locator(".arrows dt").allTextContents()).slice(1).entries()) {
      const endpoint = title.split(" → ")[1]!;
      expect(places).toContain(endpoint);
      expect(endpoints[i]).toContain(endpoint.split(":")[0]);
    }
  });

  it("a flushed ruleset is reported, and the other node is shown on request", async () => {
    await run("flush node-b");
    await tab.selectOption("h1 select", "node-b");
    await poll(() => text("header")).toMatch(/Drift\d+ repaired/);
    await goTo(tab, "#/node?node=node-b");
    await poll(() => text("main")).toContain("drift");
  });

  it("a daemon that is killed is reported, and the page connects to the next one", async () => {
    await poll(() => text(".connection")).toBe("live");
    const { pid } = JSON.parse(
      execFileSync("curl", ["-s", "--unix-socket", place.playground.statusSocketOf("node-a"), "http://x/"], {
        encoding: "utf8",
      }),
    ) as { pid: number };
    process.kill(pid, "SIGKILL");
    await poll(() => text(".connection")).toBe("disconnected");
    await poll(() => text(".connection")).toBe("live");
    await poll(() => text(".list tbody")).toContain("shop/web");
    await poll(() => text("header .pill")).toBe("healthy");
  });

  it("security/17: actions need the session and the Origin of the page", async () => {
    const post = (headers: Readonly<Record<string, string>>) =>
      fetch(`http://127.0.0.1:${page.port}/api/act`, { method: "POST", headers, body: '{"line":"help"}' });
    const origin = `http://127.0.0.1:${page.port}`;
    const authorization = `Bearer ${page.token}`;
    expect((await post({ origin })).status).toBe(401);
    expect((await post({ authorization })).status).toBe(403);
    expect((await post({ authorization, origin: "http://evil.example" })).status).toBe(403);
    const answer = await post({ authorization, origin });
    expect([answer.status, JSON.stringify(await answer.json())]).toEqual([
      200,
      expect.stringContaining("send FROM TO"),
    ]);
  });
});
