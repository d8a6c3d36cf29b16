// The word lint finds words and old identifiers in a tree.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";

const lint = join(import.meta.dirname, "../scripts/words.mjs");
const roots: string[] = [];

function tree(files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), "turnout-words-"));
  roots.push(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

function run(root: string) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [lint, root], { encoding: "utf8" });
  return { status, stdout, stderr };
}

afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

describe("the word lint", () => {
  it.each([
    ["a word", "src/a.ts", "// the client is told twice", "told"],
    ["its infinitive", "bin/a", "# tell the user", "tell"],
    ["a word at the start of a sentence", "docs/a.md", "Whoever reads this", "whoever"],
    ["a word in an identifier", "src/a.ts", "const isHeard = heardTwice;", "heard"],
    ["a phrase", "README.md", "It goes on without it.", "goes on without"],
    ["a phrase in an identifier", "test/a.ts", "const badHour = 1;", "bad hour"],
    ["a phrase in capitals", "src/a.ts", "const BAD_HOUR = 1;", "bad hour"],
    ["an old identifier", "bench/a.ts", "new Crank()", "Crank"],
    ["a word in the name of a file", "test/laws.ts", "", "laws"],
  ])("finds %s", (_, path, text, word) => {
    const { status, stderr } = run(tree({ [path]: text }));
    expect(status).toBe(1);
    expect(stderr).toMatch(new RegExp(`^${path}(:1| \\(its name\\)): "${word}": use`));
  });

  it("names the line and the word to use", () => {
    expect(run(tree({ "src/a/b.ts": "\n\n// told\n" })).stderr).toBe(
      'src/a/b.ts:3: "told": use reported, returned, logged or printed\n',
    );
  });

  it.each([
    ["other words that contain it", "src/a.ts", "recommended lawful foretold cranky trays HEARTBEAT"],
    ["an identifier in lower case", "src/a.ts", "a tray, a bell, a door"],
    ["the alias --anew", "src/a.ts", 'const alias = "anew"; // --anew'],
    ["keys of JSON output", "src/a.ts", "readonly heardAt: number; readonly fates: readonly Change[];"],
    ["the specification", "docs/spec/a.md", "told"],
    ["other folders", "examples/a.yaml", "told"],
  ])("accepts %s", (_, path, text) => {
    expect(run(tree({ [path]: text }))).toEqual({ status: 0, stdout: "", stderr: "" });
  });
});
