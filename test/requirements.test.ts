// Requirement numbers in test titles (`04/23`) refer to docs/spec/: each one resolves, and each requirement has a test.
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "..");

// A title starts with its requirements; elsewhere in a test `10/24` may be a network.
const titles = /["'`]((?:[012][0-9]\/[0-9]{1,3}(?:[-–][0-9]{1,3})?(?:[ ,&+]|and )*)+)/g;

/** Rows of page 12 are checked by `scenarios.test.ts`. */
const pages = readdirSync(join(root, "docs/spec")).filter((name) => /^\d\d-.*\.md$/.test(name));
const requirements = new Map(pages.map((name) => [name.slice(0, 2), numbersOn(name)]));

const tested = new Set(testFiles().flatMap(titleNumbers));
const explained = new Set(numbersIn(read("docs/compatibility.md")));

describe("requirements", () => {
  it("resolve to docs/spec/", () => {
    expect(
      [...tested].filter((id) => {
        const [page, number] = id.split("/") as [string, string];
        return !requirements.get(page)?.has(Number(number));
      }),
    ).toEqual([]);
  });

  it("have a test, or a line in docs/compatibility.md", () => {
    const all = [...requirements]
      .filter(([page]) => page !== "12")
      .flatMap(([page, numbers]) => [...numbers].map((number) => `${page}/${number}`));
    expect(all.length).toBe(383);
    expect(all.filter((id) => !tested.has(id) && !explained.has(id))).toEqual([]);
  });
});

/** The numbered list under the heading "Requirements", or the numbered rows of page 12. */
function numbersOn(name: string): Set<number> {
  const text = read(`docs/spec/${name}`);
  if (name.startsWith("12"))
    return new Set([...text.matchAll(/^\| ?(\d+) ?\|/gm)].map(([, number]) => Number(number)));
  const list = text.slice(text.search(/^#+ (\d+\. )?Requirements/m));
  return new Set([...list.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number)));
}

function testFiles(): string[] {
  const endings = { src: ".test.ts", playground: ".test.ts", test: ".ts" };
  return Object.entries(endings).flatMap(([folder, ending]) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(ending))
      .map((name) => read(join(folder, name))),
  );
}

function titleNumbers(text: string): string[] {
  return [...text.matchAll(titles)].flatMap(([, numbers]) => numbersIn(numbers!));
}

/** `04/3`, also in a range like `04/3-7`. */
function numbersIn(text: string): string[] {
  const ranges = text.matchAll(/(?<![\w.:/])([0-9]{2})\/([0-9]{1,3})(?:[-–]([0-9]{1,3}))?\b/g);
  return [...ranges].flatMap(([, page, from, to]) =>
    Array.from({ length: Number(to ?? from) - Number(from) + 1 }, (_, i) => `${page}/${Number(from) + i}`),
  );
}

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}
