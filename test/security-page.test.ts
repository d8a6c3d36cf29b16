// docs/security.md and the findings of the review: every finding has a test that carries its number.
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";

const root = resolve(import.meta.dirname, "..");
const findings = { security: 17, behaviour: 7, user: 7, upstream: 3 };
const titled = new Set(testTexts().flatMap(findingsIn));

it("every finding has a test", () => {
  const all = Object.entries(findings).flatMap(([kind, count]) =>
    Array.from({ length: count }, (_, i) => `${kind}/${i + 1}`),
  );
  expect(all.filter((finding) => !titled.has(finding))).toEqual([]);
});

it("every row of docs/security.md names tests that exist", () => {
  const page = readFileSync(join(root, "docs/security.md"), "utf8");
  const table = page.slice(page.indexOf("## What holds"), page.indexOf("## Listeners"));
  const rows = table.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| against"));
  expect(rows.length).toBeGreaterThan(15);
  const named = (row: string) =>
    [...row.matchAll(/`((?:security|upstream)\/\d+)`/g)].map(([, name]) => name!);
  expect(rows.filter((row) => named(row).length === 0)).toEqual([]);
  expect(rows.flatMap(named).filter((name) => !titled.has(name))).toEqual([]);
});

function testTexts(): string[] {
  return ["src", "playground", "test"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".test.ts"))
      .map((name) => readFileSync(join(root, folder, name), "utf8")),
  );
}

/** Numbers at the start of titles. */
function findingsIn(text: string): string[] {
  return [...text.matchAll(/["'`]((?:security|behaviour|user|upstream)\/\d+)[: ]/g)].map(([, name]) => name!);
}
