// The page in Chromium: every view, its filters and keys, live updates, lost connections, hostile names.
import type { BrowserContext } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { PageFiles } from "../../src/page/files.ts";
import type { ExplainView, ServicesView, ServiceView, WhatIfView } from "../../src/page/json.ts";
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
import { nodes, openTestPage, service, shop, type TestPage } from "./cluster.ts";

describe.skipIf(missingBrowser !== null)(
  `the page in a browser${missingBrowser === null ? "" : `: ${missingBrowser}`}`,
  () => {
    let browser: BrowserContext;
    let files: PageFiles;
    let page: TestPage;
    let tab: Tab;

    beforeAll(async () => {
      [browser, files] = await Promise.all([openBrowser(), freshFiles()]);
    });
    afterAll(() => closeBrowser(browser));
    beforeEach(async () => {
      page = await openTestPage(files, shop);
    });
    afterEach(async () => {
      const complaints = tab?.complaints ?? [];
      await leaveTab(browser);
      await page.close();
      if (complaints.length > 0) throw new Error(complaints.join("\n"));
    });

    const open = async (hash = "", view: View = {}) => {
      tab = await openTab(browser, page.url, view);
      await tab.waitForSelector("header.status .pill");
      if (hash !== "") await goTo(tab, hash);
    };
    const json = async <T>(view: string, query = "") =>
      JSON.parse((await page.views.answer(view, new URLSearchParams(query))).body) as T;
    const names = () => tab.locator(".list tbody a").allTextContents();
    const poll = <T>(read: () => Promise<T>) => {
      return expect.poll(read, { timeout: 10_000, interval: 50 });
    };

    it("exchanges the token for a session, and removes it from the address and the history", async () => {
      await open();
      expect(await tab.evaluate("location.href")).toBe(`http://127.0.0.1:${page.port}/#/services`);
      await tab.reload();
      await tab.waitForSelector("header.status .pill");
      expect(await tab.evaluate("document.cookie")).toBe("");
    });

    it.each(["/", "/#token=wrong", "/#/services"])("shows how to get a session at %s", async (path) => {
      tab = await openTab(browser, `http://127.0.0.1:${page.port}${path}`);
      await tab.waitForSelector("text=No session");
      expect(await tab.locator("main").textContent()).toContain("turnout page");
      await expectAccessible(tab);
      // The printed address, opened in the same tab, helps.
      await goTo(tab, `#token=${page.token}`);
      await tab.waitForSelector(".list tbody a");
    });

    describe("Services", () => {
      it("has those that need attention first, with the same numbers as the JSON", async () => {
        await open();
        await poll(names).toEqual(["shop/broken", "shop/web", "kube-system/dns", "shop/cart"]);
        const { rows } = await json<ServicesView>("services");
        expect(await names()).toEqual(rows.map((row) => row.service));
        const cells = await tab.locator(".list tbody td:nth-child(3)").allTextContents();
        expect(cells).toEqual(["0", "3 of 4", "2", "1"]);
        const states = await tab.locator(".list tbody td:nth-child(4)").allTextContents();
        expect(states.map((text) => text.replace(/^[●▲] /, ""))).toEqual(
          rows.map(({ reasons }) => reasons[0] ?? "ok"),
        );
        expect(await tab.locator("footer").first().textContent()).toContain("4 Services · 7 endpoints");
      });

      it("filters by state, namespace and type; the address has the filters", async () => {
        await open();
        await tab.click('.chip:has-text("Trouble")');
        await poll(names).toEqual(["shop/broken"]);
        await tab.selectOption('select[aria-label="Namespace"]', "kube-system");
        await tab.waitForSelector("text=No Service matches");
        await tab.click('.chip:has-text("All")');
        await poll(names).toEqual(["kube-system/dns"]);
        await tab.selectOption('select[aria-label="Namespace"]', "");
        await tab.selectOption('select[aria-label="Type"]', "NodePort");
        await poll(names).toEqual(["shop/web", "shop/cart"]);
        const address = tab.url();
        const other = await tab.context().newPage();
        await other.goto(address);
        await expect
          .poll(() => other.locator(".list tbody a").allTextContents())
          .toEqual(["shop/web", "shop/cart"]);
        await tab.goBack();
        await tab.goBack();
        await poll(names).toEqual(["kube-system/dns"]);
      });

      it("is searched by name, address of the Service and address of an endpoint", async () => {
        await open();
        await tab.waitForSelector(".list tbody a");
        await tab.keyboard.press("/");
        await tab.keyboard.type("cart");
        await poll(names).toEqual(["shop/cart"]);
        await tab.keyboard.press("Escape");
        await poll(names).toHaveLength(4);
        for (const [text, found] of [
          ["172.30.0.13", ["kube-system/dns"]],
          ["30081", ["shop/cart"]],
          ["10.0.2.13", ["shop/web"]],
          ["nothing", []],
        ] as const) {
          await tab.fill('input[type="search"]', text);
          await poll(names).toEqual(found);
        }
      });

      it("is used with the keyboard alone", async () => {
        await open();
        await tab.waitForSelector(".list tbody a");
        await tab.locator(".list tbody a").first().focus();
        for (const key of ["ArrowDown", "j", "ArrowDown", "ArrowDown", "k"]) await tab.keyboard.press(key);
        expect(await tab.evaluate("document.activeElement?.textContent")).toBe("kube-system/dns");
        await tab.keyboard.press("Enter");
        await tab.waitForSelector(".detail h2:has-text('kube-system/dns')");
        await tab.keyboard.press("2");
        await tab.waitForSelector("h2:has-text('Try a packet')");
        await tab.keyboard.press("3");
        await tab.waitForSelector("h2:has-text('Configuration in force')");
        await tab.keyboard.press("?");
        await tab.waitForSelector("dialog[open]");
        await expectAccessible(tab);
        await tab.keyboard.press("Escape");
        await poll(() => tab.locator("dialog").count()).toBe(0);
        await tab.keyboard.press("1");
        await tab.waitForSelector(".list tbody a");
        await tab.keyboard.press("Tab");
        expect(await tab.evaluate("document.activeElement?.textContent")).not.toBe("");
      });

      it("draws few of many rows, and loads the others when they are scrolled to", async () => {
        page.write([
          ...nodes,
          ...Array.from({ length: 2000 }, (_, i) =>
            service({
              name: `s${String(i).padStart(4, "0")}`,
              ip: `172.30.${(i >> 8) + 1}.${i & 255}`,
              ready: 1,
            }),
          ).flat(),
        ]);
        await open();
        await poll(async () => tab.locator("footer").first().textContent()).toContain("2,000 Services");
        expect((await names()).length).toBeLessThanOrEqual(100);
        await tab.evaluate('document.querySelector(".scroll").scrollTo(0, 1_000_000)');
        await poll(names).toContain("shop/s1999");
        expect((await names()).length).toBeLessThanOrEqual(125);
        expect(await tab.locator("table").first().getAttribute("aria-rowcount")).toBe("2001");
      });
    });

    describe("a Service", () => {
      it("shows the shares, exclusions and reasons of the JSON for each sender and frontend", async () => {
        await open("#/services?service=shop/web");
        await tab.waitForSelector(".picture svg");
        const { ports } = await json<ServiceView>("service", "name=shop/web");
        const [port] = ports;
        for (const [i, path] of port!.paths.entries()) {
          await goTo(tab, `#/services?service=shop/web&path=${i}`);
          await poll(async () => tab.locator(".why .command code").textContent()).toBe(
            `turnout explain ${path.from} ${path.to} --source=files:shop`,
          );
          const because = await tab.locator(".why .trace dd").first().locator("p").allTextContents();
          expect(because).toEqual(path.because);
          const picture = await tab.locator(".picture svg").textContent();
          for (const index of path.chosen) expect(picture).toContain(port!.endpoints[index]!.endpoint);
          const shares = (picture!.match(/33\.3 %/g) ?? []).length;
          expect(shares).toBe(path.chosen.length);
          for (const { reason } of path.leftOut) expect(picture).toContain(reason);
        }
        expect(port!.paths).toHaveLength(6);
      });

      it("is selected by sender and frontend in the picture", async () => {
        await open("#/services?service=shop/cart");
        await tab.click('.picture a:has-text("*:30081")');
        await tab.click('.picture a:has-text("outside")');
        await poll(async () => tab.locator(".why .trace").textContent()).toContain(
          "externalTrafficPolicy Local",
        );
        await tab.click('.picture a:has-text("pods here")');
        await poll(async () => tab.locator(".why .trace").textContent()).toContain(
          "traffic that starts on this node may use the whole cluster",
        );
      });

      it("shows a message when there is no endpoint, and when the Service is gone", async () => {
        await open("#/services?service=shop/broken");
        await tab.waitForSelector("text=rejects: no usable endpoint");
        expect(await tab.locator(".picture").textContent()).toContain("no endpoints");
        page.write(shop.filter((object) => !JSON.stringify(object).includes("broken")));
        await tab.waitForSelector("text=This Service is gone");
      });
    });

    describe("Try a packet", () => {
      it("shows the Trace of the JSON, and its reasons when there is none", async () => {
        await open("#/packet");
        await tab.fill('label:has-text("From") input', "outside");
        await tab.fill('label:has-text("To") input', "nodeport:30080");
        await tab.click('button:has-text("Explain")');
        await tab.waitForSelector(".trace");
        const view = await json<ExplainView>("explain", "from=outside&to=nodeport:30080");
        const rows = await tab.locator(".trace table tr").allTextContents();
        expect(rows).toHaveLength(view.candidates.length);
        for (const [i, { endpoint, node, because }] of view.candidates.entries())
          for (const part of ["33.3 %", endpoint, node, because]) expect(rows[i]).toContain(part);
        const text = await tab.locator(".trace").textContent();
        for (const part of [...view.because, view.leftOut[0]!.reason, view.clientSees])
          expect(text).toContain(part);
        expect(await tab.evaluate("location.hash")).toContain("to=nodeport%3A30080");
        await tab.fill('label:has-text("To") input', "svc/shop/weeb");
        await tab.keyboard.press("Enter");
        await tab.waitForSelector("text=did you mean svc/shop/web?");
      });

      it("draws the way of this packet alone", async () => {
        await open("#/packet?from=pod:10.0.1.10&to=svc/shop/web");
        await tab.waitForSelector(".packet .picture svg");
        const { picture } = await json<ExplainView>("explain", "from=pod:10.0.1.10&to=svc/shop/web");
        const text = await tab.locator(".packet .picture svg").textContent();
        expect(text).toContain(picture!.frontends[0]!.place);
        expect(text).not.toContain("*:30080");
        for (const { endpoint } of picture!.endpoints) expect(text).toContain(endpoint);
        await tab.click(".packet .picture a:has-text('172.30.0.10:80')");
        await tab.waitForSelector(".detail h2:has-text('shop/web')");
      });

      it("compares before and after: without a pod, a node, and what does not exist", async () => {
        await open("#/packet?from=outside&to=nodeport:30081");
        await tab.click("summary:has-text('What if')");
        await tab.click('.choices button:has-text("pod 10.0.1.10")');
        await tab.waitForSelector("h3:has-text('Without pod 10.0.1.10')");
        const query = "from=outside&to=nodeport:30081&without=pod/10.0.1.10";
        const { answer, packet } = await json<WhatIfView>("whatif", query);
        const sides = await tab.locator(".compared section").allTextContents();
        for (const [side, view] of [
          [sides[0], packet!.before],
          [sides[1], packet!.after!],
        ] as const)
          for (const part of [view.outcome, view.because.at(-1)!, view.clientSees])
            expect(side).toContain(part);
        expect(sides[1]).toContain("10.0.1.10:8080gone");
        expect(packet!.after!.outcome).not.toBe(packet!.before.outcome);
        expect(answer.withoutEndpoint.map(({ port }) => port)).toEqual(["shop/cart"]);
        expect(await tab.locator(".what-if .problems").textContent()).toContain("shop/cart");
        const rows = await tab.locator(".what-if tbody tr").allTextContents();
        expect(rows).toHaveLength(answer.changes.length);
        for (const [i, { port, usable }] of answer.changes.entries())
          for (const part of [port, `${usable.before} → ${usable.after}`]) expect(rows[i]).toContain(part);
        expect(await tab.locator(".what-if .command code").textContent()).toBe(
          "turnout whatif --without=pod/10.0.1.10 --source=files:shop",
        );
        await tab.click('.choices button:has-text("node node-a")');
        await tab.waitForSelector("text=This node would be gone");
        expect(await tab.evaluate("location.hash")).toContain("without=pod%2F10.0.1.10%2Cnode%2Fnode-a");
        for (const name of ["pod 10.0.1.10", "node node-a"])
          await tab.click(`.choices button:has-text("${name}")`);
        await tab.waitForSelector(".compared", { state: "detached" });
        await tab.fill(".choices input", "node/node-x");
        await tab.keyboard.press("Enter");
        await tab.waitForSelector('text=no node is named "node-x"');
        await expectAccessible(tab);
      });

      it("a what-if is an address, and follows the cluster", async () => {
        await open("#/packet?from=node&to=svc/shop/cart&without=node/node-a");
        await tab.waitForSelector("text=This node would be gone");
        await goTo(tab, "#/packet?from=node&to=svc/shop/dns.kube-system&without=pod/10.0.1.10");
        await tab.waitForSelector("text=This question cannot be answered");
        await goTo(tab, "#/packet?from=node&to=svc/kube-system/dns&without=pod/10.0.1.10");
        await poll(async () => tab.locator(".compared").textContent()).toContain("the only endpoint");
        page.write([
          ...shop.filter((object) => !JSON.stringify(object).includes("dns")),
          ...service({ name: "dns", namespace: "kube-system", ip: "172.30.0.13", ready: 4 }),
        ]);
        await poll(async () => tab.locator(".compared").textContent()).toContain("one of 3 endpoints");
      });
    });

    it("the node shows problems and the configuration in force", async () => {
      page.write([
        ...shop,
        {
          apiVersion: "v1",
          kind: "Service",
          metadata: { name: "odd", namespace: "shop" },
          spec: { clusterIP: "x", ports: [{ port: 80 }] },
        },
      ]);
      await open("#/node");
      await tab.waitForSelector("text=Service shop/odd");
      expect(await tab.locator("pre").textContent()).toContain("mode: nftables");
    });

    describe("live", () => {
      it("a change is visible without a reload", async () => {
        await open("#/services?service=shop/cart");
        await poll(async () => tab.locator(".picture").textContent()).toContain("100 %");
        const changed = [...shop, ...service({ name: "new", ip: "172.30.0.20", ready: 1 })].map((object) =>
          JSON.stringify(object).includes("cart-1")
            ? service({ name: "cart", ip: "172.30.0.11", ready: 4 })[1]
            : object,
        );
        page.write(changed);
        await poll(names).toContain("shop/new");
        await poll(async () => tab.locator(".picture").textContent()).toContain("25 %");
      });

      it("pause holds what is shown until it is resumed", async () => {
        await open();
        await tab.waitForSelector(".list tbody a");
        await tab.keyboard.press("p");
        await tab.waitForSelector("text=paused");
        page.write([...shop, ...service({ name: "new", ip: "172.30.0.20", ready: 1 })]);
        await poll(async () => (await json<ServicesView>("services")).total).toBe(5);
        expect(await names()).not.toContain("shop/new");
        await tab.click('button:has-text("resume")');
        await poll(names).toContain("shop/new");
      });

      it("a daemon that is gone is reported, the last state stays, and the page connects again", async () => {
        await open();
        await tab.waitForSelector(".list tbody a");
        page.setDown(true);
        await tab.waitForSelector("text=Disconnected for");
        expect(await tab.locator(".message.bad").textContent()).toContain("the daemon does not respond");
        expect(await names()).toHaveLength(4);
        await expectAccessible(tab);
        page.write([...shop, ...service({ name: "new", ip: "172.30.0.20", ready: 1 })]);
        page.setDown(false);
        await poll(names).toContain("shop/new");
        await poll(() => tab.locator(".message.bad").count()).toBe(0);
      });

      it("a server that was started again has no session of before", async () => {
        await open();
        await tab.waitForSelector(".list tbody a");
        const { port } = page;
        await page.close();
        page = await openTestPage(files, shop, { port });
        await tab.waitForSelector("text=No session");
      });
    });

    describe("security/17: hostile names", () => {
      const hostile = [
        "shop/<img src=x onerror=alert(1)>",
        'shop/"><script>alert(2)</script>',
        "shop/\u202egnp.exe",
        `shop/${"a".repeat(253)}`,
        "shop/&lt;b&gt;",
        "shop/{{7*7}}",
      ];

      it("are shown as text, and fit", async () => {
        await open("", { size: { width: 380, height: 800 } });
        await poll(names).toHaveLength(4);
        const { rows } = await json<ServicesView>("services");
        const all = hostile.map((name, i) => ({ ...rows[i % rows.length]!, service: name, reasons: [name] }));
        await tab.route("**/api/services?**", async (route) => {
          const view = await json<ServicesView>("services");
          await route.fulfill({ json: { ...view, rows: all, matched: all.length, total: all.length } });
        });
        await tab.route("**/api/service?**", async (route) => {
          const view = await json<ServiceView>("service", "name=shop/web");
          const name = new URL(route.request().url()).searchParams.get("name")!;
          const [port] = view.ports;
          const endpoints = port!.endpoints.map((each) => ({ ...each, node: name, endpoint: `${name}:80` }));
          await route.fulfill({
            json: {
              ...view,
              row: { ...view.row, service: name, reasons: [name] },
              problems: [name],
              ports: [{ ...port, name, endpoints }],
            },
          });
        });
        await tab.reload();
        await poll(names).toEqual(hostile);
        await expectFits(tab);
        for (const name of hostile) {
          await goTo(tab, `#/services?${new URLSearchParams({ service: name }).toString()}`);
          await poll(async () => tab.locator(".detail h2").textContent()).toBe(name);
          await expectFits(tab);
          expect(await tab.locator(".detail img, .detail script, .detail b").count()).toBe(0);
        }
      });

      it("in the address are text too", async () => {
        for (const [query, shown] of [
          ["from=<script>alert(1)</script>&to=x", "invalid sender"],
          ["from=node&to=<img src=x onerror=alert(1)>", "invalid destination"],
        ] as const) {
          await open(`#/packet?${query}`);
          await tab.waitForSelector(`text=${shown}`);
          expect(await tab.locator("main img, main script").count()).toBe(0);
          if (query.includes("script")) await leaveTab(browser);
        }
      });
    });

    describe("every view is accessible and fits", () => {
      const views = {
        services: "#/services",
        service: "#/services?service=shop/web",
        refused: "#/services?service=shop/broken",
        packet: "#/packet?from=outside&to=nodeport:30080",
        question: "#/packet",
        "what-if": "#/packet?from=outside&to=nodeport:30080&without=pod/10.0.1.10",
        node: "#/node",
      };
      it.each([
        [1400, "light"],
        [1400, "dark"],
        [380, "light"],
        [380, "dark"],
      ] as const)("%s px wide, %s", async (width, colorScheme) => {
        await open("", { size: { width, height: 800 }, colorScheme, reducedMotion: "reduce" });
        for (const hash of Object.values(views)) {
          await goTo(tab, hash);
          await tab.waitForLoadState("networkidle").catch(() => {});
          await poll(() => tab.locator("text=Loading").count()).toBe(0);
          await expectAccessible(tab);
          await expectFits(tab);
        }
      });
    });
  },
);
