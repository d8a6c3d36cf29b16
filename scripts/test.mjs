// Runs vitest and ends with the plain line `N passed, N failed, N skipped`; arguments go to vitest.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "..");
const scratch = mkdtempSync(join(tmpdir(), "turnout-test-"));
const report = join(scratch, "report.json");
const { status } = spawnSync(
  join(root, "node_modules", ".bin", "vitest"),
  ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`, ...process.argv.slice(2)],
  { cwd: root, stdio: "inherit", env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` } },
);
const results = readReport();
for (const { name, reason } of skips(results)) console.log(`skipped: ${name}${reason ? ` (${reason})` : ""}`);
console.log(
  `${results.numPassedTests} passed, ${results.numFailedTests} failed, ${results.numPendingTests + results.numTodoTests} skipped`,
);
process.exit(status === 0 && results.numPassedTests > 0 ? 0 : 1);

function readReport() {
  try {
    return JSON.parse(readFileSync(report, "utf8"));
  } catch (error) {
    console.error(`test: vitest left no report: ${error.message}`);
    return { numPassedTests: 0, numFailedTests: 1, numPendingTests: 0, numTodoTests: 0, testResults: [] };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function skips({ testResults }) {
  return testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status: outcome }) => outcome === "pending" || outcome === "skipped")
    .map(({ fullName, meta }) => ({ name: fullName, reason: meta?.reason }));
}
