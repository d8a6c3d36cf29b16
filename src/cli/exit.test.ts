// How a program ends, seen from outside.
import { spawnSync } from "node:child_process";
import { buildSync } from "esbuild";
import { expect, it } from "vitest";

const { outputFiles } = buildSync({
  stdin: {
    contents: `import { exitWith } from "./exit.ts"; exitWith(COMMAND);`,
    resolveDir: import.meta.dirname,
  },
  bundle: true,
  platform: "node",
  format: "cjs",
  write: false,
});
const program = outputFiles[0]!.text;

it.each([
  ["Promise.resolve(3)", 3, ""],
  ["new Promise((done) => setTimeout(() => done(0), 50))", 0, ""],
  ["Promise.reject(new Error('no'))", 2, "Error: no"],
  ["new Promise(() => setTimeout(() => { throw new Error('later') }))", 2, "Error: later"],
  ["new Promise(() => {})", 2, "The command has not ended, and nothing is left"],
])("of %s the code is %i", (command, code, words) => {
  const { status, stderr } = spawnSync(process.execPath, ["-e", program.replace("COMMAND", command)]);
  expect(status).toBe(code);
  expect(String(stderr)).toContain(words);
  expect(words === "" ? String(stderr) : "").toBe("");
});
