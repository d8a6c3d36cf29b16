// What is logged about invalid objects.
import { expect, it } from "vitest";
import { logLines } from "../../test/support/log-lines.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import type { Problem } from "../model/problem.ts";
import { openProblemLog } from "./problem-log.ts";

it("logs each Problem once, and again only after it was gone", () => {
  const { report, lines } = setUp();
  const [one, two] = [problem("Service shop/web"), problem("Service shop/front")];
  report([one]);
  report([one, two]);
  report([two, one]);
  expect(lines()).toHaveLength(2);
  expect(lines()[0]).toMatch(
    /^E.*"Object is not as expected" err="is wrong" object="Service shop\/web" field="spec"$/,
  );
  report([two]);
  report([two, one]);
  expect(lines()).toHaveLength(3);
});

it("counts what would be a flood", () => {
  const { report, lines } = setUp();
  report(Array.from({ length: 1000 }, (_, i) => problem(`Service shop/web-${i}`)));
  expect(lines()).toHaveLength(21);
  expect(lines().at(-1)).toContain('err="980 more"');
});

function setUp() {
  const { log, lines } = logLines(manualClock());
  return { report: openProblemLog(log), lines };
}

function problem(object: string): Problem {
  return { kind: "wrong-type", object, field: "spec", message: "is wrong" };
}
