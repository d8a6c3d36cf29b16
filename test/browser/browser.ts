// Chromium for the tests of the page, and the page that it opens.
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type BrowserContext, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import { pageFiles } from "../../src/page/embedded.ts";
import type { PageFiles } from "../../src/page/files.ts";

export const root = resolve(import.meta.dirname, "../..");

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));

/** null: the tests can run. */
export const missingBrowser =
  executablePath === undefined ? "needs Chromium (Debian package chromium)" : null;

/** All tests of a file share it. */
export async function openBrowser(): Promise<BrowserContext> {
  // Root has no sandbox in Chromium. Nothing but the page of this test is opened.
  const args = ["--no-sandbox"];
  const browser = await chromium.launch({ executablePath: executablePath!, args });
  return browser.newContext({ viewport: wide });
}

const wide = { width: 1400, height: 900 };

export async function closeBrowser(context: BrowserContext | undefined): Promise<void> {
  await context?.browser()?.close();
}

/** Removes what the next test must not find. One tab stays: the process that a new one starts costs a second of CPU time. */
export async function leaveTab(context: BrowserContext): Promise<void> {
  const [spare, ...others] = context.pages();
  for (const tab of others) await tab.close();
  await spare?.unrouteAll();
  await spare?.goto("about:blank");
  await context.clearCookies();
}

/** The static files as they are now, not as they were at the last build. */
export async function freshFiles(): Promise<PageFiles> {
  const { buildPage } = (await import(join(root, "scripts/page.mjs"))) as {
    buildPage: (folder: string) => Promise<void>;
  };
  const folder = mkdtempSync(join(tmpdir(), "turnout-page-"));
  await buildPage(folder);
  return pageFiles(folder);
}

export type Tab = Page & {
  /** What the page reported: errors, refused resources, dialogs. */
  readonly complaints: string[];
};

export type View = {
  readonly size?: { readonly width: number; readonly height: number };
  readonly colorScheme?: "light" | "dark";
  readonly reducedMotion?: "reduce";
};

export async function openTab(context: BrowserContext, url: string, view: View = {}): Promise<Tab> {
  const [spare] = context.pages() as Tab[];
  const tab = spare ?? recording(await context.newPage());
  const { size = wide, colorScheme = null, reducedMotion = null } = view;
  await tab.setViewportSize(size);
  await tab.emulateMedia({ colorScheme, reducedMotion });
  tab.complaints.length = 0;
  await tab.goto(url);
  return tab;
}

function recording(page: Page): Tab {
  const tab = Object.assign(page, { complaints: [] as string[] });
  tab.on("pageerror", (error) => tab.complaints.push(error.message));
  tab.on("dialog", (dialog) => {
    tab.complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  tab.on("console", (message) => {
    // A refused request is part of some tests.
    if (message.type() === "error" && !message.text().includes("Failed to load resource"))
      tab.complaints.push(message.text());
  });
  return tab;
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

type Violation = {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { html: string }[];
};

/** Finds nothing serious; every finding is printed. */
export async function expectAccessible(tab: Page): Promise<void> {
  // Compiled once for all views of a tab.
  if (!(await tab.evaluate("'axe' in globalThis"))) await tab.evaluate(axe);
  const found = await tab.evaluate(async () => {
    const run = (globalThis as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } }).axe.run();
    return (await run).violations;
  });
  const serious = found.filter(({ impact }) => impact === "serious" || impact === "critical");
  expect(serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)).toEqual([]);
}

/** The page does not scroll sideways. */
export async function expectFits(tab: Page): Promise<void> {
  const width = await tab.evaluate(overflow);
  expect(width).toBeLessThanOrEqual(0);
}

const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";

/** Another view of the same page. */
export async function goTo(tab: Page, hash: string): Promise<void> {
  await tab.evaluate(`location.hash = ${JSON.stringify(hash)}`);
}
