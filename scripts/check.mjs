// The gate before every commit: types, lint, format, words, dead code, fast tests. Stops at the first red step.
// usage: check.mjs [--without-tests]   when all tests run next
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const node = process.execPath;
const bin = (name) => join(root, "node_modules", ".bin", name);

const steps = [
  ["types", node, [bin("tsc"), "--noEmit"]],
  ["types of the page", node, [bin("tsc"), "--noEmit", "--project", "page"]],
  ["format and lint", node, [bin("biome"), "ci", "--log-level=warn", "--diagnostic-level=warn", "."]],
  ["lint with types", node, [bin("oxlint"), "--type-aware", "--quiet"]],
  ["words", node, [join(root, "scripts/words.mjs")]],
  ["dead code", node, [bin("knip"), "--no-progress"]],
  ["build", node, [join(root, "scripts/build.mjs")]],
  ...(process.argv.includes("--without-tests")
    ? []
    : [["fast tests", node, [join(root, "scripts/test.mjs"), "--project", "unit"]]]),
];

for (const [name, command, args] of steps) {
  const started = Date.now();
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) {
    console.error(`check: ${name} failed`);
    process.exit(1);
  }
  console.log(`check: ${name} ok (${((Date.now() - started) / 1000).toFixed(1)} s)`);
}
