// A vitest reporter that writes what scripts/test.mjs prints at the end: counts, and each skipped test with its reason.
import { writeFileSync } from "node:fs";

export default class Report {
  onTestRunEnd(modules, errors) {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const brokenModules = modules.filter((module) => module.errors().length > 0);
    const inState = (state) => tests.filter((test) => test.result().state === state);
    const report = {
      passed: inState("passed").length,
      failed: inState("failed").length + brokenModules.length + errors.length,
      skipped: inState("skipped").map((test) => ({ name: test.fullName, reason: test.result().note })),
    };
    writeFileSync(process.env.TURNOUT_TEST_REPORT, JSON.stringify(report));
  }
}
