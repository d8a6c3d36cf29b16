// The places in the sources that a crash report names.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { transformSync } from "esbuild";
import { expect, it } from "vitest";
import { printCrash } from "./crash.ts";

it("names source files where the bundle has a source map, and leaves places unchanged where it has none", () => {
  const folder = mkdtempSync(join(tmpdir(), "turnout-bug-"));
  try {
    const bundle = join(folder, "dist.cjs");
    const source = "type Unused = 1;\n\n\nexport const fail = () => {\n  throw new Error('no');\n};\n";
    const { code, map } = transformSync(source, {
      loader: "ts",
      format: "cjs",
      sourcemap: "external",
      sourcefile: "src/fail.ts",
    });
    writeFileSync(bundle, code);
    writeFileSync(`${bundle}.map`, map);
    const line = code.split("\n").findIndex((text) => text.includes("throw")) + 1;
    expect(line).not.toBe(5);
    const bug = new Error("no");
    bug.stack = `Error: no\n    at fail (${bundle}:${line}:9)\n    at other (${folder}/other.cjs:7:1)`;
    expect(printCrash(bug)).toBe(
      `Error: no\n    at fail (${folder}/src/fail.ts:5:9)\n    at other (${folder}/other.cjs:7:1)`,
    );
    expect(printCrash("plain text")).toBe("plain text");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
