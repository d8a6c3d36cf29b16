// Chromium for the tests of the page, and the page that it opens.
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import { pageFiles } from "../../src/page/embedded.ts";
import type { PageFiles } from "../../src/page/files.ts";

export const root = resolve(import.meta.dirname, "../..");

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));

/** null: the tests can run. */
export const missingBrowser =
  executablePath === undefined ? "needs Chromium (Debian package chromium)" : null;

export function openBrowser(): Promise<Browser> {
  // Root has no sandbox in Chromium. Nothing but the page of this test is opened.
  return chromium.launch({ executablePath: executablePath!, args: ["--no-sandbox"] });
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

export async function openTab(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Tab> {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  const tab = Object.assign(await context.newPage(), { complaints: [] as string[] });
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
  await tab.goto(url);
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
  await tab.evaluate(axe);
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
