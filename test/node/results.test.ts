// How the results of upstream's tests are read and compared.
import { describe, expect, it } from "vitest";
import { readResults } from "./e2e.ts";
import { chaosTable, type Run, regressions, summary } from "./report.ts";
import { count } from "./requests.ts";

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

  it("are summed up by run and listed by spec", () => {
    const text = summary([run("x", null, { a: "passed", b: "failed" }), run("y", null, { a: "passed" })]);
    expect(text).toContain("| x | 1 | 1 | 0 |");
    expect(text).toContain("| b | failed | – |");
  });
});

describe("requests during a disturbance", () => {
  const ended = (total: number, ...failed: number[]) =>
    Array.from({ length: total }, (_, index) => ({ index, ok: !failed.includes(index) }));

  it("are served again once half a second's worth of them succeeded, in the order of sending", () => {
    expect(count(ended(100, 3, 74))).toEqual({ sent: 100, failed: 2, served: true });
    expect(count(ended(100, 75))).toEqual({ sent: 100, failed: 1, served: false });
    expect(count(ended(100, 10).toReversed())).toEqual({ sent: 100, failed: 1, served: true });
    expect(count([])).toEqual({ sent: 0, failed: 0, served: false });
  });

  it("are listed by disturbance, beside those of the other proxy", () => {
    const good = { sent: 2100, failed: 12, served: true };
    const bad = { sent: 2100, failed: 2000, served: false };
    const failures = [{ disturbance: "rules flushed", pod: good, outside: bad }];
    const text = chaosTable(
      new Map([
        ["kube-proxy, nftables", failures],
        ["Turnout, nftables", []],
      ]),
    );
    expect(text.split("\n")[2]).toBe("| rules flushed | 12 of 2,100; 2,000 of 2,100 * | – |");
    expect(chaosTable(new Map())).toBe("");
  });
});
