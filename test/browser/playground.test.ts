// The page of a playground in Chromium: what happens in a real kernel is visible as it happens.
import { execFileSync } from "node:child_process";
import type { BrowserContext } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openPlaygroundPage } from "../../playground/page.ts";
import type { PageFiles } from "../../src/page/files.ts";
import type { OpenPage } from "../../src/page/server.ts";
import { playgroundFor, reasonToSkipPlayground } from "../kernel/ground.ts";
import {
  closeBrowser,
  freshFiles,
  goTo,
  leaveTab,
  missingBrowser,
  openBrowser,
  openTab,
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

  it("scaling a Deployment is visible within a second", async () => {
    await goTo(tab, "#/services?service=shop/web");
    await poll(() => text(".picture")).toContain("33.3 %");
    const start = performance.now();
    place.playground.scale("web", 4);
    await poll(() => text(".picture")).toContain("25 %");
    expect(performance.now() - start).toBeLessThan(1_000);
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
