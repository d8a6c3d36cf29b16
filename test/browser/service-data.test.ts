// What a Service's view shows besides the picture, in Chromium: its history, compared with what the tools print.
import type { BrowserContext } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { causesOf, changeLines, writtenWords } from "../../src/history/print.ts";
import type { HistoryAnswer } from "../../src/inspect/history.ts";
import type { FlowView } from "../../src/model/flow.ts";
import { endpointKey, type ServicePort } from "../../src/model/snapshot.ts";
import type { TrafficReport } from "../../src/observe/traffic/report.ts";
import type { PageFiles } from "../../src/page/files.ts";
import type { FlowsView, TrafficView } from "../../src/page/json.ts";
import type { NodeRecords } from "../../src/page/records/records.ts";
import { type ShopDaemon, shopDaemon, shopService, webSlice } from "../support/history-daemon.ts";
import { trackedView } from "../support/tracked-flows.ts";
import {
  closeBrowser,
  expectAccessible,
  expectFits,
  freshFiles,
  goTo,
  leaveTab,
  missingBrowser,
  openBrowser,
  openTab,
  type Tab,
  type View,
} from "./browser.ts";
import { shop as objects, openTestPage, type TestPage } from "./cluster.ts";

/** The traffic of shop/web, which grows with each reading; the first endpoint has three of four connections. */
function counted(setting: "services" | "endpoints" = "endpoints") {
  let readings = 0;
  const read = async (): Promise<TrafficReport> => {
    const connections = 100 + 40 * readings++;
    const flows = { active: 7, packetsIn: 9, bytesIn: connections * 100, packetsOut: 9, bytesOut: 2 ** 21 };
    const endpoints = [
      { endpoint: "10.0.1.10:8080", connections: connections * 0.75, flows: { ...flows, active: 5 } },
      { endpoint: "10.0.2.11:8080", connections: connections * 0.25, flows: { ...flows, active: 2 } },
    ];
    return {
      setting,
      mode: "nftables",
      at: Date.now(),
      flowsAt: Date.now(),
      counters: { counted: true, gaps: [{ from: 0, to: 1000 }] },
      flows: { counted: true, gaps: [] },
      ports: [
        {
          namespace: "shop",
          name: "web",
          portName: "",
          protocol: "tcp",
          port: 80,
          counts: { connections, refused: 12, outOfRange: 3 },
          flows,
          endpoints: setting === "endpoints" ? endpoints : [],
        },
      ],
    };
  };
  return { setting, read };
}

/** Flows that the kernel tracks. */
function tracked(flows: readonly FlowView[]): NodeRecords["flows"] & { readings: number } {
  const records = {
    readings: 0,
    settings: () => ({ accounting: true, timestamps: true }),
    async visit(visit: (flow: FlowView) => void) {
      records.readings++;
      for (const flow of flows) visit(flow);
      return { examined: 4_102, complete: true };
    },
  };
  return records;
}

const noFlows = tracked([]);

/** To a ready endpoint, to one that is not ready, and to one that is gone. */
const webFlows = [
  trackedView("tcp 10.0.1.9:4001 > 172.30.0.10:80 > 10.0.1.10:8080"),
  trackedView("tcp 10.0.1.9:4002 > 192.168.0.2:30080 > 10.0.2.13:8080"),
  trackedView("tcp 203.0.113.9:4003 > 172.30.0.10:80 > 10.0.1.99:8080"),
];

/** Three clients are pinned to the first endpoint of every port. */
const pins = async ({ endpoints }: ServicePort) => [
  {
    endpoint: endpointKey(endpoints[0]!),
    set: "affinity-ABC",
    clients: [
      { address: "10.0.1.77", seconds: 10_000 },
      { address: "10.0.1.78", seconds: 40 },
      { address: "203.0.113.5", seconds: 5 },
    ],
  },
];

const walks = () => Promise.reject(new Error("must not be read"));

const off = { setting: "off", read: () => Promise.reject(new Error("must not be read")) } as const;

describe.skipIf(missingBrowser !== null)("the data of a Service in a browser", () => {
  let browser: BrowserContext;
  let files: PageFiles;
  let page: TestPage;
  let tab: Tab;
  beforeAll(async () => {
    [browser, files] = await Promise.all([openBrowser(), freshFiles()]);
  });
  afterAll(() => closeBrowser(browser));
  afterEach(async () => {
    const complaints = tab?.complaints ?? [];
    await leaveTab(browser);
    await page.close();
    if (complaints.length > 0) throw new Error(complaints.join("\n"));
  });

  const open = async (records: NodeRecords | null, hash: string, view: View = {}) => {
    page = await openTestPage(files, objects, { records });
    tab = await openTab(browser, page.url, view);
    await tab.waitForSelector("header.status .pill");
    await goTo(tab, hash);
  };
  const poll = <T>(read: () => Promise<T>) => {
    return expect.poll(read, { timeout: 10_000, interval: 50 });
  };
  const texts = (selector: string) => tab.locator(selector).allTextContents();

  describe("History", () => {
    const hash = "#/services?service=shop/web&tab=history";
    const changed = async () => {
      const shop = await shopDaemon();
      await shop.change("EndpointSlice", webSlice("1", "2", "4"));
      await shop.change("Service", shopService({ externalTrafficPolicy: "Local" }));
      await shop.change("EndpointSlice", webSlice("1-", "2"), {
        outcome: { kind: "failed", message: "EBUSY" },
      });
      return shop;
    };
    const recordsOf = (shop: ShopDaemon): NodeRecords => ({
      history: shop.history.lines,
      traffic: off,
      flows: noFlows,
      pinned: null,
      walks,
    });
    const printed = async (shop: ShopDaemon) => {
      const [, ...changes] = [...shop.history.lines(new URLSearchParams({ to: "svc/shop/web" }))];
      return changes as HistoryAnswer["changes"];
    };

    it("has the words of turnout history, the newest first", async () => {
      const shop = await changed();
      await open(recordsOf(shop), hash);
      await poll(() => tab.locator(".history li").count()).toBe(3);
      const changes = await printed(shop);
      expect(await texts(".history .cause")).toEqual(changes.map(causesOf));
      expect(await texts(".history .written")).toEqual(changes.map(({ written }) => writtenWords(written)));
      expect(await texts(".history .line")).toEqual(
        changes.flatMap((change) => change.changes.flatMap(changeLines).map((line: string) => line.trim())),
      );
      expect(await texts(".history .written.bad")).toHaveLength(1);
      await tab.click(".history summary >> nth=0");
      const [before, after] = [await texts(".history dd.before"), await texts(".history dd.after")];
      expect(before[0]).toContain("10.0.4.1:8080");
      expect(after[0]).not.toContain("10.0.4.1:8080");
      expect(await tab.locator(".history .begins").textContent()).toMatch(/^History begins at /);
    });

    it("shows a change as it is recorded, and loads only what is new", async () => {
      const shop = await changed();
      await open(recordsOf(shop), hash);
      await poll(() => tab.locator(".history li").count()).toBe(3);
      const asked: string[] = [];
      tab.on("request", (request) => {
        const { pathname, searchParams } = new URL(request.url());
        if (pathname === "/api/history") asked.push(searchParams.get("after") ?? "");
      });
      await shop.change("EndpointSlice", webSlice("2"));
      page.write(objects.filter((object) => !JSON.stringify(object).includes("broken")));
      await poll(() => tab.locator(".history li").count()).toBe(4);
      expect(asked).toEqual(["2"]);
    });

    it("states what was dropped, that there is none, and that there is no daemon", async () => {
      const small = await shopDaemon(4_000);
      for (let i = 0; i < 20; i++) await small.change("EndpointSlice", webSlice(i % 2 === 0 ? "1" : "2"));
      await open(recordsOf(small), hash);
      await tab.waitForSelector("text=older changes were dropped because of the size limit");
      await leaveTab(browser);
      await page.close();
      await open(recordsOf(await shopDaemon(0)), hash);
      await tab.waitForSelector("text=start it with --history-size=8Mi");
      await leaveTab(browser);
      await page.close();
      await open(null, hash);
      await tab.waitForSelector("text=only a daemon keeps a history");
    });

    it("of a Service that is gone can still be read", async () => {
      const shop = await changed();
      await shop.remove("Service", "web");
      await open(recordsOf(shop), hash);
      await poll(() => tab.locator(".history li").count()).toBe(4);
      page.write(objects.filter((object) => !JSON.stringify(object).includes("web")));
      await tab.waitForSelector("text=This Service is gone");
      await poll(async () => (await texts(".history .line"))[0]).toContain("removed; it had 2 endpoints");
    });
  });

  describe("Traffic", () => {
    const hash = "#/services?service=shop/web&tab=traffic";
    const withTraffic = async (traffic: NodeRecords["traffic"]): Promise<NodeRecords> => ({
      history: (await shopDaemon(0)).history.lines,
      traffic,
      flows: noFlows,
      pinned: null,
      walks,
    });
    const json = async <T>(view: string, query = "") =>
      JSON.parse((await page.views.answer(view, new URLSearchParams(query))).body) as T;
    const facts = async () => {
      const [labels, values] = [await texts(".totals dt"), await texts(".totals dd")];
      return Object.fromEntries(labels.map((label, i) => [label, values[i]]));
    };
    const columns = () => texts(".list thead th");

    it("has the numbers of turnout top, in the table and on the view", async () => {
      await open(await withTraffic(counted()), hash);
      await poll(columns).toEqual(["Service", "Type", "Endpoints", "Active", "New/s", "State"]);
      await tab.waitForSelector(".traffic .totals");
      await poll(async () => (await facts())["New/s"]).toMatch(/^1?\d(\.\d)?$|^2[0-5]$/);
      await tab.keyboard.press("p");
      await tab.waitForSelector("text=paused");
      const { ports } = (await json<TrafficView>("traffic", "name=shop/web")).traffic!;
      const { row } = ports[0]!;
      const shown = await facts();
      expect(shown).toMatchObject({
        Active: String(row.active),
        Refused: "12",
        "Outside ranges": "3",
        Skew: "1.5x",
        Out: "2.0 MiB",
      });
      const total = Number(shown.Connections!.replaceAll(",", ""));
      expect([row.connections, row.connections! - 40]).toContain(total);
      const endpoints = await texts(".traffic .wide tbody tr");
      expect(endpoints.map((text) => text.slice(0, 14))).toEqual(["10.0.1.10:8080", "10.0.2.11:8080"]);
      expect(endpoints[0]).toMatch(/node-a5.*75 %$/);
      await tab.waitForSelector(".traffic canvas");
      const cells = await texts('.list tbody tr:has(a:has-text("shop/web")) td.number');
      expect(cells[0]).toBe("7");
      expect(cells[1]).toMatch(/^[\d.–]+15 refused$/);
      expect(await texts('.list tbody tr:has(a:has-text("shop/cart")) td.number')).toEqual(["0", "0"]);
      expect(await tab.locator(".traffic .note").textContent()).toMatch(
        /^connections are unknown from .* to /,
      );
    });

    it("has no columns where it is not counted, and states why once", async () => {
      await open(await withTraffic(off), hash);
      await tab.waitForSelector("text=Not counted; start the daemon with --traffic=services.");
      expect(await columns()).toEqual(["Service", "Type", "Endpoints", "State"]);
      expect(await texts("text=traffic not counted")).toEqual([
        "traffic not counted; start the daemon with --traffic=services",
      ]);
    });

    it("of endpoints is not counted by default, which is stated", async () => {
      await open(await withTraffic(counted("services")), hash);
      await tab.waitForSelector("text=start the daemon with --traffic=endpoints");
      expect(Object.keys(await facts())).not.toContain("Skew");
    });
  });

  describe("Flows", () => {
    const hash = "#/services?service=shop/web&tab=flows";
    const withFlows = async (flows: NodeRecords["flows"]): Promise<NodeRecords> => ({
      history: (await shopDaemon(0)).history.lines,
      traffic: off,
      flows,
      pinned: null,
      walks,
    });

    it("lists them, stale ones first with the reason of doctor flows", async () => {
      const flows = tracked(webFlows);
      await open(await withFlows(flows), "#/services?service=shop/web");
      await tab.waitForSelector(".why");
      // Nothing is read before it is asked for.
      expect(flows.readings).toBe(0);
      await tab.click('nav.tabs a:has-text("Flows")');
      await poll(() => tab.locator(".flows tbody tr").count()).toBe(3);
      expect(await tab.locator(".flows .summary").textContent()).toContain("3 flows2 stale: ");
      const { flows: rows } = JSON.parse(
        (await page.views.answer("flows", new URLSearchParams({ name: "shop/web" }))).body,
      ) as FlowsView;
      expect(await texts(".flows td.reason")).toEqual(
        rows.map(({ finding, words }) => (finding === null ? words : `${finding.class}: ${finding.because}`)),
      );
      expect(await texts(".flows tr.stale td:nth-child(3) code")).toEqual(
        rows.filter(({ finding }) => finding !== null).map(({ endpoint }) => endpoint),
      );
      expect((await texts(".flows td.reason"))[0]).toContain("is no longer an endpoint of shop/web");
    });

    it("are read again while they are shown, not afterwards, and on request", async () => {
      const flows = tracked(webFlows);
      await open(await withFlows(flows), "#/services?service=shop/web");
      await tab.waitForSelector(".why");
      let asked = 0;
      tab.on("request", (request) => {
        if (request.url().includes("/api/flows")) asked++;
      });
      await tab.clock.install();
      await tab.click('nav.tabs a:has-text("Flows")');
      await tab.waitForSelector(".flows tbody tr");
      expect(asked).toBe(1);
      await tab.clock.runFor(5_500);
      await poll(async () => asked).toBe(2);
      await poll(async () => {
        await tab.click('button:has-text("read again")');
        return flows.readings;
      }).toBeGreaterThan(1);
      await tab.click('nav.tabs a:has-text("Why")');
      await tab.waitForSelector(".why");
      const before = asked;
      await tab.clock.runFor(60_000);
      expect(asked).toBe(before);
    });

    it("states that there are none, and that there is no daemon", async () => {
      await open(await withFlows(noFlows), hash);
      await tab.waitForSelector("text=The kernel tracks no connection to this Service.");
      await leaveTab(browser);
      await page.close();
      await open(null, hash);
      await tab.waitForSelector("text=flows are tracked by the kernel of a node");
    });
  });

  describe("sticky clients", () => {
    const sticky = objects.map((object) => {
      const { kind, metadata, spec } = object as { kind: string; metadata: { name: string }; spec: object };
      return kind === "Service" && metadata.name === "web"
        ? { ...(object as object), spec: { ...spec, sessionAffinity: "ClientIP" } }
        : object;
    });
    const withPins = async (pinned: NodeRecords["pinned"]): Promise<NodeRecords> => ({
      history: (await shopDaemon(0)).history.lines,
      traffic: off,
      flows: noFlows,
      pinned,
      walks,
    });
    const openSticky = async (records: NodeRecords | null) => {
      await open(records, "#/services?service=shop/web");
      page.write(sticky);
      await tab.waitForSelector("text=sticky for 10800 s");
    };

    it("are counted at their endpoint in the picture, and listed", async () => {
      await openSticky(await withPins(pins));
      await poll(() => texts(".picture text.sticky")).toEqual(["3 sticky"]);
      expect(await texts(".pins li")).toEqual([
        "10.0.1.10:8080 ← 10.0.1.77 for 2 h, 10.0.1.78 for 40 s, 203.0.113.5 for 5 s",
      ]);
      await expectAccessible(tab);
      await expectFits(tab);
    });

    it("are stated to be unknown where the mode does not report them, and without a daemon", async () => {
      await openSticky(await withPins(null));
      await tab.waitForSelector("text=nftables mode does not report them");
      await leaveTab(browser);
      await page.close();
      await openSticky(null);
      await tab.waitForSelector("text=not known: there is no daemon");
    });
  });

  it.each([
    [1400, "light"],
    [1400, "dark"],
    [380, "light"],
    [380, "dark"],
  ] as const)("every tab is accessible and fits: %s px wide, %s", async (width, colorScheme) => {
    const shop = await shopDaemon();
    await shop.change("EndpointSlice", webSlice("1", "2-", "4"));
    const size = { width, height: 800 };
    const records = {
      history: shop.history.lines,
      traffic: counted(),
      flows: tracked(webFlows),
      pinned: pins,
      walks,
    };
    await open(records, "#/services", { size, colorScheme });
    for (const name of ["traffic", "flows", "history"]) {
      await goTo(tab, `#/services?service=shop/web&tab=${name}`);
      await tab.waitForSelector(`nav.tabs a[aria-current]:has-text("${name}")`);
      await poll(() => tab.locator("text=Loading").count()).toBe(0);
      for (const summary of await tab.locator("details summary").all()) await summary.click();
      await expectAccessible(tab);
      await expectFits(tab);
    }
  });
});
