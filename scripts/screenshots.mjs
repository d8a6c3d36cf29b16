// Draws the pictures of docs/page.md: starts the playground, opens its page in Chromium, and takes screenshots.
// usage: screenshots.mjs [FOLDER]   default docs/images; needs root and Chromium
import { spawn } from "node:child_process";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { root } from "./bundle.mjs";

const folder = process.argv[2] ?? join(root, "docs", "images");
const views = [
  { name: "page", hash: "#/services?service=shop/web", width: 1120, height: 600 },
  {
    name: "page-packet",
    hash: "#/packet?from=web-1&to=svc/shop/stock",
    width: 760,
    height: 800,
    colorScheme: "dark",
  },
  {
    name: "page-what-if",
    hash: "#/packet?from=stock-1&to=svc/shop/web&without=node/node-b",
    width: 1120,
    height: 840,
  },
];

const playground = spawn(join(root, "bin/turnout"), ["playground"], { stdio: ["ignore", "pipe", "inherit"] });
try {
  const url = await ready();
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  for (const view of views) await draw(browser, url, view);
  await browser.close();
} finally {
  playground.kill("SIGTERM");
}

/** After its tour, so that there is something to see. */
async function ready() {
  let text = "";
  for await (const some of playground.stdout.setEncoding("utf8")) {
    text += some;
    if (text.includes("Running until interrupted")) return /http:\/\/127\S+/.exec(text)[0];
  }
  throw new Error("The playground ended before it was ready");
}

async function draw(browser, url, { name, hash, width, height, colorScheme = "light" }) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme,
    reducedMotion: "reduce",
  });
  const tab = await context.newPage();
  await tab.goto(url);
  await tab.waitForSelector(".list tbody a");
  await tab.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  await tab.waitForSelector(".trace");
  await tab.waitForTimeout(500);
  const path = join(folder, `${name}.png`);
  await tab.screenshot({ path });
  console.log(`wrote ${path}`);
  await context.close();
}
