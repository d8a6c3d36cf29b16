// Inside a user-mode kernel: runs the tests of one file and prints each outcome.
import { writeSync } from "node:fs";
import { startTests, type Task, type Test, type VitestRunner } from "@vitest/runner";
import { getNames, getTests } from "@vitest/runner/utils";
import { type Outcome, outcomeLine, testName } from "./wire.ts";

/** Nothing is quick here, and on a busy machine much is slow. */
const timeoutMs = 1_800_000;

/** Ends the process when all are done. `wanted`: names of tests; none means all. */
export async function runHere(
  file: string,
  load: () => Promise<unknown>,
  wanted: readonly string[],
): Promise<void> {
  const tests = new Map<string, Test>();
  const isWanted = (task: Task) => wanted.length === 0 || wanted.includes(nameOf(task));
  const report = (test: Test | undefined) => {
    if (test !== undefined && isWanted(test)) print(outcomeLine(outcomeOf(test)));
  };
  const runner: VitestRunner = {
    config: {
      root: process.cwd(),
      setupFiles: [],
      sequence: { hooks: "stack", setupFiles: "list", shuffle: false, concurrent: false, seed: 0 },
      maxConcurrency: 1,
      testTimeout: timeoutMs,
      hookTimeout: timeoutMs,
      // Real packets and real time: what fails twice is broken.
      retry: 1,
      includeTaskLocation: false,
      passWithNoTests: true,
      allowOnly: true,
      chaiConfig: undefined,
      name: "uml",
    } as unknown as VitestRunner["config"],
    importFile: load,
    onBeforeRunTask(task: Task) {
      if (!isWanted(task)) task.mode = "skip";
    },
    onCollected(files) {
      for (const test of getTests(files)) tests.set(test.id, test);
    },
    async onTaskUpdate(_, events) {
      for (const [id, event] of events) if (event === "test-finished") report(tests.get(id));
    },
  };
  const files = await startTests([file], runner);
  for (const { result } of files)
    for (const error of result?.errors ?? []) print(`${error.stack ?? error.message}\n`);
  process.exit();
}

function nameOf(task: Task): string {
  return testName(getNames(task).slice(1));
}

function outcomeOf(test: Test): Outcome {
  const { state, errors = [], duration = 0, ...rest } = test.result ?? { state: "skip" as const };
  // The reason of a skip is in the result, though not in its type.
  const { note = "" } = rest as { readonly note?: string };
  // What could not be prepared has not been tested: that is no skip.
  const unprepared = state === "pass" || note !== "" ? [] : errorsAround(test);
  // Of one that passed, the error is that of the try before.
  const failures = [...errors.slice(-1), ...unprepared];
  const reason = failures.length > 0 ? failures.map(describeError).join("\n") : note;
  const seconds = duration / 1000;
  return { name: nameOf(test), state: stateOf(state, failures.length > 0), reason, seconds };
}

function stateOf(state: string, hasFailed: boolean): Outcome["state"] {
  if (state === "pass") return "passed";
  return state === "fail" || hasFailed ? "failed" : "skipped";
}

/** Errors of the hooks of all that surrounds a test. */
function errorsAround({ suite, file }: Test): readonly TestError[] {
  const found: TestError[] = [];
  for (let around = suite; around !== undefined; around = around.suite)
    found.push(...(around.result?.errors ?? []));
  return [...found, ...(file.result?.errors ?? [])];
}

type TestError = { readonly message?: string; readonly stack?: string; readonly diff?: string };

function describeError({
  message,
  stack,
  diff,
}: {
  message?: string;
  stack?: string;
  diff?: string;
}): string {
  const where = stack?.split("\n").find((line) => line.includes(" at ")) ?? "";
  return [message ?? "", diff ?? "", where].filter((part) => part !== "").join("\n");
}

// The console blocks, so this waits; `process.stdout` might lose its last lines when the machine goes down.
function print(text: string): void {
  writeSync(1, text);
}
