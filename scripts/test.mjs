// Runs vitest, then prints skipped tests by reason, retried and failed tests, and last `N passed, N failed, N skipped`.
// Arguments go to vitest.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const scratch = mkdtempSync(join(tmpdir(), "turnout-test-"));
const reportFile = join(scratch, "report.json");
const reporters = ["--reporter=default", `--reporter=${join(root, "scripts", "report.mjs")}`];
const { status } = spawnSync(
  process.execPath,
  [join(root, "node_modules", ".bin", "vitest"), "run", ...reporters, ...process.argv.slice(2)],
  {
    cwd: root,
    stdio: "inherit",
    env: {
      ...process.env,
      PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
      TURNOUT_TEST_REPORT: reportFile,
    },
  },
);
const { passed, failed, skipped, retried } = readReport();
for (const [reason, count] of countByReason(skipped)) console.log(`skipped: ${count} × ${reason}`);
for (const test of retried) print("retried", test);
for (const test of failed) print("failed", test);
console.log(`${passed} passed, ${failed.length} failed, ${skipped.length} skipped`);
process.exit(status === 0 && passed + skipped.length > 0 ? 0 : 1);

/** The most frequent reason first. */
function countByReason(tests) {
  const counts = new Map();
  for (const { reason } of tests) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
}

function print(what, { name, messages }) {
  console.log([`${what}: ${name}`, ...messages.map(indented)].join("\n"));
}

/** The beginning of a message: some hold whole rule sets. */
function indented(message) {
  return message.slice(0, 2000).replace(/^/gm, "    ");
}

function readReport() {
  try {
    return JSON.parse(readFileSync(reportFile, "utf8"));
  } catch (error) {
    const failed = [{ name: "vitest", messages: [`It left no report: ${error.message}`] }];
    return { passed: 0, failed, skipped: [], retried: [] };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
