// The page is small: all its static files together, compressed as they are sent.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { pageFiles } from "../src/page/embedded.ts";

const most = 80_000;

it(`has at most ${most} bytes`, async () => {
  const { buildPage } = (await import(join(import.meta.dirname, "../scripts/page.mjs"))) as {
    buildPage: (folder: string) => Promise<void>;
  };
  const folder = mkdtempSync(join(tmpdir(), "turnout-page-"));
  try {
    await buildPage(folder);
    const files = Object.entries(pageFiles(folder));
    const total = files.reduce((sum, [, { gzip }]) => sum + Buffer.from(gzip, "base64").length, 0);
    expect(files.map(([path]) => path).sort()).toEqual(["/", "/app.css", "/app.js", "/icon.svg"]);
    expect(total).toBeLessThan(most);
    expect(total).toBeGreaterThan(most / 10);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
