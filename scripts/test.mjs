// Runs vitest and ends with the plain line `N passed, N failed, N skipped`; arguments go to vitest.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "..");
const scratch = mkdtempSync(join(tmpdir(), "turnout-test-"));
const reportFile = join(scratch, "report.json");
const reporters = ["--reporter=default", `--reporter=${join(root, "scripts", "report.mjs")}`];
const { status } = spawnSync(
  join(root, "node_modules", ".bin", "vitest"),
  ["run", ...reporters, ...process.argv.slice(2)],
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
const { passed, failed, skipped } = readReport();
for (const { name, reason } of skipped) console.log(`skipped: ${name}${reason ? ` (${reason})` : ""}`);
console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`);
process.exit(status === 0 && passed + skipped.length > 0 ? 0 : 1);

function readReport() {
  try {
    return JSON.parse(readFileSync(reportFile, "utf8"));
  } catch (error) {
    console.error(`test: vitest left no report: ${error.message}`);
    return { passed: 0, failed: 1, skipped: [] };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
