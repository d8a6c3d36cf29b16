// Runs vitest, then prints the slowest files, skipped tests by reason, retried and failed tests, and last `N passed, N failed, N skipped`.
// Arguments go to vitest. Without any, unit tests run beside the others: they compute while the others wait.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const root = join(import.meta.dirname, "..");
const given = process.argv.slice(2);
const runs = given.length > 0 ? [given] : [["--project=unit"], ["--project=!unit"]];
const scratch = mkdtempSync(join(tmpdir(), "turnout-test-"));
const started = Date.now();

// An interrupt goes to vitest as well, which then ends.
process.on("SIGINT", () => {});
const codes = await Promise.all(runs.map(runVitest));
const reports = runs.map((_, i) => readReport(i));
rmSync(scratch, { recursive: true, force: true });

const all = (key) => reports.flatMap((report) => report[key]);
const [files, skipped, retried, failed] = ["files", "skipped", "retried", "failed"].map(all);
const passed = reports.reduce((sum, report) => sum + report.passed, 0);
for (const { name, seconds } of slowest(files)) console.log(`slowest: ${seconds.toFixed(1)} s ${name}`);
for (const [reason, count] of countByReason(skipped)) console.log(`skipped: ${count} × ${reason}`);
for (const test of retried) print("retried", test);
for (const test of failed) print("failed", test);
console.log(`took ${minutes((Date.now() - started) / 1000)}, of CPU time ${minutes(cpuSeconds())}`);
console.log(`${passed} passed, ${failed.length} failed, ${skipped.length} skipped`);
process.exit(codes.every((code) => code === 0) && passed + skipped.length > 0 ? 0 : 1);

/** Resolves with its exit code. A run that is not alone prints whole lines, without a live summary. */
function runVitest(args, i) {
  const reporters = ["--reporter=default", `--reporter=${join(root, "scripts", "report.mjs")}`];
  const isAlone = runs.length === 1;
  const color = !isAlone && process.stdout.isTTY ? { FORCE_COLOR: "1" } : {};
  const vitest = spawn(
    process.execPath,
    [join(root, "node_modules", ".bin", "vitest"), "run", ...reporters, ...args],
    {
      cwd: root,
      stdio: isAlone ? "inherit" : ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        ...color,
        PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
        // Some hundred processes load the same programs.
        NODE_COMPILE_CACHE: join(scratch, "compiled"),
        TURNOUT_TEST_REPORT: reportFile(i),
      },
    },
  );
  for (const [from, to] of [
    [vitest.stdout, process.stdout],
    [vitest.stderr, process.stderr],
  ])
    if (from !== null) createInterface({ input: from }).on("line", (line) => to.write(`${line}\n`));
  return new Promise((resolve, reject) => {
    vitest.on("error", reject);
    vitest.on("close", (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  });
}

function reportFile(i) {
  return join(scratch, `report-${i}.json`);
}

function readReport(i) {
  try {
    return JSON.parse(readFileSync(reportFile(i), "utf8"));
  } catch (error) {
    const failed = [{ name: "vitest", messages: [`It left no report: ${error.message}`] }];
    return { passed: 0, failed, skipped: [], retried: [], files: [] };
  }
}

/** Ten of a run of many files; of a few, none. */
function slowest(files) {
  return files.length < 20 ? [] : files.toSorted((a, b) => b.seconds - a.seconds).slice(0, 10);
}

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

/** Of all programs that have ended and been waited for, from vitest to daemons and guests; proc(5): hundredths of a second. */
function cpuSeconds() {
  const [, fields] = /\) (.*)$/s.exec(readFileSync("/proc/self/stat", "utf8"));
  const [user, system] = fields.split(" ").slice(13, 15).map(Number);
  return (user + system) / 100;
}

function minutes(seconds) {
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
