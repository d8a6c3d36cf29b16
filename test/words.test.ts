// The word lint finds words and old identifiers in a tree, and compares their numbers with what a folder may have.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";

const lint = join(import.meta.dirname, "../scripts/words.mjs");
const roots: string[] = [];

function tree(files: Record<string, string>, allowances: unknown = {}): string {
  const root = mkdtempSync(join(tmpdir(), "turnout-words-"));
  roots.push(root);
  for (const [path, text] of Object.entries({ ...files, "scripts/words.json": JSON.stringify(allowances) })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

function run(root: string, ...options: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [lint, ...options, root], {
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

const allowances = (root: string) =>
  JSON.parse(readFileSync(join(root, "scripts/words.json"), "utf8")) as unknown;

afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

describe("the word lint", () => {
  it.each([
    ["a word", "src/a.ts", "// the client is told twice", "told"],
    ["a word at the start of a sentence", "docs/a.md", "Whoever reads this", "whoever"],
    ["a word in an identifier", "src/a.ts", "const isHeard = heardTwice;", "heard"],
    ["a phrase", "README.md", "It goes on without it.", "goes on without"],
    ["a phrase in an identifier", "test/a.ts", "const badHour = 1;", "bad hour"],
    ["an old identifier", "bench/a.ts", "new Crank()", "Crank"],
    ["a word in the name of a file", "test/laws.ts", "", "laws"],
  ])("finds %s", (_, path, text, word) => {
    const { status, stderr } = run(tree({ [path]: text }));
    expect(status).toBe(1);
    expect(stderr).toContain(`${path}: "${word}"`);
  });

  it("names the line and the word to use", () => {
    expect(run(tree({ "src/a/b.ts": "\n\n// told\n" })).stderr).toBe(
      'src/a/b.ts: "told" 1 times, allowed 0: use reported, returned, logged or printed\n  src/a/b.ts:3\n',
    );
  });

  it.each([
    ["other words that contain it", "src/a.ts", "recommended lawful foretold cranky trays"],
    ["an identifier in lower case", "src/a.ts", "a tray, a bell, a door"],
    ["the alias --anew", "src/a.ts", 'const alias = "anew"; // --anew'],
    ["a key of JSON output", "src/a.ts", "readonly heardAt: number;"],
    ["the specification", "docs/spec/a.md", "told"],
    ["other folders", "deploy/a.yaml", "told"],
  ])("accepts %s", (_, path, text) => {
    expect(run(tree({ [path]: text }))).toEqual({ status: 0, stdout: "", stderr: "" });
  });

  it("counts a file for the longest prefix that has allowances", () => {
    const files = { "src/a.ts": "told", "src/host/a.ts": "told told", "src/hosts/a.ts": "told" };
    expect(run(tree(files, { src: { told: 2 }, "src/host": { told: 2 } })).status).toBe(0);
    expect(run(tree(files, { src: { told: 3 }, "src/host": { told: 1 } })).stderr).toContain(
      'src/host: "told" 2 times, allowed 1',
    );
  });

  it("asks to lower an allowance of which less is used, and lowers it", () => {
    const root = tree({ "src/a.ts": "told" }, { src: { told: 3, anew: 1 }, docs: { told: 1 } });
    expect(run(root)).toEqual({
      status: 0,
      stdout: "words: 4 fewer than scripts/words.json allows: run scripts/words.mjs --lower\n",
      stderr: "",
    });
    expect(run(root, "--lower").status).toBe(0);
    expect(allowances(root)).toEqual({ src: { told: 1 } });
  });

  it("does not raise an allowance", () => {
    const root = tree({ "src/a.ts": "told told" }, { src: { told: 1 } });
    expect(run(root, "--lower").status).toBe(1);
    expect(allowances(root)).toEqual({ src: { told: 1 } });
  });
});
