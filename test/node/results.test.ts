// How the results of upstream's tests are read and compared.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readResults } from "./e2e.ts";
import { failed, printReport, type Report, type Run, regressions, unrepaired } from "./report.ts";
import { merged, readReport, writeReport } from "./report-file.ts";
import { type Count, count, createSchedule } from "./requests.ts";

const xml = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="e2e">
  <testcase name="[ReportBeforeSuite]" status="passed" time="0"></testcase>
  <testcase name="[It] [sig-network] Services should serve &#34;a&#34; &amp; b" status="passed" time="1"><system-err>log</system-err></testcase>
  <testcase name="[It] [sig-network] Services should fail" status="failed" time="2">
    <failure message="timed out&#xA;after 2m" type="failed">at x</failure>
  </testcase>
  <testcase name="[It] [sig-network] Services need a provider" status="skipped" time="0"><skipped message="skipped - only for gce"></skipped></testcase>
  <testcase name="[It] [sig-node] never selected" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>
</testsuite></testsuites>`;

const took = { date: "2026-11-18", minutes: 12.3, load: 4.2 };
const none: Report = { versions: {}, runs: [], disturbed: [] };

describe("results of upstream's tests", () => {
  it("are read by spec, without those that were not selected", () => {
    expect([...readResults(xml)]).toEqual([
      ['[sig-network] Services should serve "a" & b', { outcome: "passed", message: "" }],
      ["[sig-network] Services should fail", { outcome: "failed", message: "timed out\nafter 2m" }],
      ["[sig-network] Services need a provider", { outcome: "skipped", message: "skipped - only for gce" }],
    ]);
  });

  const run = (
    label: string,
    baseline: string | null,
    outcomes: Record<string, "passed" | "failed">,
  ): Run => ({
    label,
    baseline,
    took,
    results: new Map(Object.entries(outcomes).map(([spec, outcome]) => [spec, { outcome, message: "why" }])),
  });

  it("count as failed where kube-proxy passed or did not run the spec", () => {
    const runs = [
      run("kube-proxy, nftables", null, { a: "passed", b: "failed" }),
      run("Turnout, nftables", "kube-proxy, nftables", { a: "failed", b: "failed", c: "failed" }),
      run("Turnout, userspace", null, { a: "failed" }),
    ];
    expect(regressions(runs)).toEqual(["Turnout, nftables: a: why", "Turnout, nftables: c: why"]);
  });

  it("are summed up by run and listed by spec, without tags", () => {
    const spec = "[sig-network] Services should serve [LinuxOnly] [Conformance] [sig-network, Conformance]";
    const runs = [run("x", null, { b: "failed", [spec]: "passed" }), run("y", null, { [spec]: "passed" })];
    expect(printReport({ ...none, versions: { "kube-proxy": "v1.37.1", Linux: "6.18" }, runs })).toBe(
      `With kube-proxy v1.37.1, Linux 6.18.

| upstream's specs | passed | failed | skipped | date | minutes | load |
|---|---|---|---|---|---|---|
| x | 1 | 1 | 0 | 2026-11-18 | 12 | 4 |
| y | 1 | 0 | 0 | 2026-11-18 | 12 | 4 |

| spec | x | y |
|---|---|---|
| Services should serve | passed | passed |
| b | failed | – |
`,
    );
  });

  it("of a part replace those of the same specs in the report, which is kept in a file", () => {
    const folder = mkdtempSync(join(tmpdir(), "turnout-report-"));
    try {
      expect(readReport(folder)).toEqual(none);
      writeReport(folder, {
        ...none,
        runs: [run("x", null, { a: "failed", b: "passed" }), run("y", null, {})],
      });
      const again = merged(readReport(folder), {
        ...none,
        runs: [run("z", null, {}), run("x", null, { a: "passed", c: "passed" })],
      });
      expect(again.runs.map(({ label }) => label)).toEqual(["x", "y", "z"]);
      expect([...again.runs[0]!.results].map(([spec, { outcome }]) => [spec, outcome])).toEqual([
        ["a", "passed"],
        ["b", "passed"],
        ["c", "passed"],
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("requests during a disturbance", () => {
  const counted: Count = { sent: 0, failed: 0, served: true, reasons: {}, pausedMs: 0 };
  const ended = (total: number, ...failed: number[]) =>
    Array.from({ length: total }, (_, index) => ({
      index,
      reason: failed.includes(index) ? "timeout" : null,
    }));

  it("are served again once half a second's worth of them succeeded, in the order of sending", () => {
    expect(count(ended(100, 3, 74))).toEqual({ ...counted, sent: 100, failed: 2, reasons: { timeout: 2 } });
    expect(count(ended(100, 75))).toEqual({
      ...counted,
      sent: 100,
      failed: 1,
      served: false,
      reasons: { timeout: 1 },
    });
    expect(count(ended(100, 10).toReversed())).toEqual({
      ...counted,
      sent: 100,
      failed: 1,
      reasons: { timeout: 1 },
    });
    expect(count([])).toEqual({ ...counted, served: false });
  });

  it("are sent late by a busy machine, but not after a pause, which is reported", () => {
    const schedule = createSchedule(50);
    expect([0, 5, 20, 100, 1080].map((ms) => schedule.due(ms))).toEqual([1, 0, 1, 4, 49]);
    expect(schedule.pausedMs).toBe(0);
    expect([2100, 2100, 2120].map((ms) => schedule.due(ms))).toEqual([1, 0, 1]);
    expect(schedule.pausedMs).toBe(1000);
    const { sent, pausedMs } = count(ended(56), schedule.pausedMs);
    expect(failed({ ...counted, sent, pausedMs })).toBe("0 of 56 (paused for 1.0 s)");
  });

  it("of one disturbance replace those of the same one in a report", () => {
    const count = (failed: number) => ({ ...counted, sent: 100, failed });
    const disturbed = (...failures: readonly (readonly [string, number])[]): Report => ({
      ...none,
      disturbed: [
        {
          label: "x",
          took,
          failures: failures.map(([disturbance, n]) => ({ disturbance, pod: count(n), outside: count(n) })),
        },
      ],
    });
    const [again] = merged(disturbed(["a", 1], ["b", 2]), disturbed(["c", 3], ["a", 4])).disturbed;
    expect(again!.failures.map(({ disturbance, pod }) => [disturbance, pod.failed])).toEqual([
      ["a", 4],
      ["b", 2],
      ["c", 3],
    ]);
  });

  it("are listed by disturbance, beside those of the other proxy", () => {
    const good = { ...counted, sent: 2100, failed: 12 };
    const bad = { ...counted, sent: 2100, failed: 2000, served: false };
    const failures = [{ disturbance: "rules flushed", pod: good, outside: bad }];
    const disturbed = [
      { label: "kube-proxy, nftables", took, failures },
      { label: "Turnout, nftables", took, failures: [] },
    ];
    expect(unrepaired(disturbed)).toEqual([]);
    expect(unrepaired([{ label: "Turnout, nftables", took, failures }])).toEqual([
      "Turnout, nftables: requests still failed at the end: rules flushed",
    ]);
    const stuck = [
      { disturbance: "mode changed", pod: good, outside: good, problem: "still in iptables mode" },
    ];
    expect(unrepaired([{ label: "Turnout, nftables", took, failures: stuck }])).toEqual([
      "Turnout, nftables: mode changed: still in iptables mode",
    ]);
    expect(
      printReport({ ...none, disturbed: [{ label: "kube-proxy, nftables", took, failures: stuck }] }),
    ).toContain("| mode changed | 12 of 2,100; 12 of 2,100 (not completed) |");
    expect(
      printReport({ ...none, disturbed })
        .trimEnd()
        .split("\n")
        .slice(-4),
    ).toEqual([
      "| failed requests from a pod; from outside | kube-proxy, nftables | Turnout, nftables |",
      "|---|---|---|",
      "| rules flushed | 12 of 2,100; 2,000 of 2,100 * | – |",
      "| date, duration, load | 2026-11-18, 12 min, load 4 | 2026-11-18, 12 min, load 4 |",
    ]);
  });
});
