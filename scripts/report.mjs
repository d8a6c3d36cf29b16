// A vitest reporter that writes what scripts/test.mjs prints at the end: counts, times of files, reasons of skipped tests,
// and the errors of tests that failed or passed only when retried.
import { writeFileSync } from "node:fs";

export default class Report {
  onTestRunEnd(modules, errors) {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const inState = (state) => tests.filter((test) => test.result().state === state);
    const failureOf = (test) => failure(nameOf(test), test.result().errors ?? []);
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
      files: modules.map((module) => ({
        name: module.relativeModuleId,
        seconds: module.diagnostic().duration / 1000,
      })),
      failed,
      skipped: inState("skipped").map(skipOf),
      retried: inState("passed").flatMap((test) => {
        if (test.diagnostic()?.flaky) return [failureOf(test)];
        const { retried } = test.meta();
        return retried === undefined ? [] : [{ name: nameOf(test), messages: [retried] }];
      }),
    };
    writeFileSync(process.env.TURNOUT_TEST_REPORT, JSON.stringify(report));
  }
}

function nameOf(test) {
  return `${test.module.relativeModuleId} > ${test.fullName}`;
}

/** A test in `describe.skipIf` has no reason; its file reports the condition. */
function skipOf(test) {
  return { reason: test.result().note ?? `see the condition in ${test.module.relativeModuleId}` };
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
