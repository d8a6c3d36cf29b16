// A vitest reporter that writes what scripts/test.mjs prints at the end: counts, skipped tests with their reasons, and
// what failed, or passed only when tried again.
import { writeFileSync } from "node:fs";

export default class Report {
  onTestRunEnd(modules, errors) {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const inState = (state) => tests.filter((test) => test.result().state === state);
    const failureOf = (test) =>
      failure(`${test.module.relativeModuleId} > ${test.fullName}`, test.result().errors ?? []);
    const failed = [
      ...inState("failed").map(failureOf),
      ...modules.flatMap((module) => [
        ...broken(module, module.relativeModuleId),
        ...[...module.children.allSuites()].flatMap((suite) =>
          broken(suite, `${module.relativeModuleId} > ${suite.fullName}`),
        ),
      ]),
      ...errors.map((error) => failure("outside of any test", [error])),
    ];
    const report = {
      passed: inState("passed").length,
      failed,
      skipped: inState("skipped").map((test) => ({ name: test.fullName, reason: test.result().note })),
      flaky: inState("passed")
        .filter((test) => test.diagnostic()?.flaky)
        .map(failureOf),
    };
    writeFileSync(process.env.TURNOUT_TEST_REPORT, JSON.stringify(report));
  }
}

/** What went wrong around the tests: they are skipped then. */
function broken(around, name) {
  return around.errors().length > 0 ? [failure(name, around.errors())] : [];
}

function failure(name, errors) {
  return { name, messages: errors.map(({ message, stack }) => `${message ?? ""}\n${place(stack)}`.trim()) };
}

/** The first line of a stack that lies in the project. */
function place(stack) {
  return (
    (stack ?? "").split("\n").find((line) => line.includes(".ts:") && !line.includes("node_modules")) ?? ""
  );
}
