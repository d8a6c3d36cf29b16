// A vitest runner that has the tests of a file run in a user-mode kernel, and reports each of them as its own.
import type { Suite, Task, Test } from "@vitest/runner";
import { getNames, getTests } from "@vitest/runner/utils";
import { TestRunner } from "vitest";
import { bootGuest, type Guest, reasonNotToBoot } from "./boot.ts";
import { testName } from "./wire.ts";

const minutes = 180;

declare module "@vitest/runner" {
  interface TaskMeta {
    /** Why the first attempt in the guest failed; the report lists it. */
    retried?: string;
  }
}

export default class GuestRunner extends TestRunner {
  #guest: Promise<Guest> | null = null;
  #reasonToSkip: string | null = null;

  override async onBeforeRunSuite(suite: Suite): Promise<void> {
    await super.onBeforeRunSuite(suite);
    // They run where the tests run.
    for (const hooks of Object.values(TestRunner.getSuiteHooks(suite))) (hooks as unknown[]).length = 0;
    if (!isFile(suite)) return;
    this.#reasonToSkip = reasonAgainst(suite.filepath);
    if (this.#reasonToSkip !== null) return;
    const wanted = getTests(suite).filter(({ mode }) => mode === "run" || mode === "queued");
    if (wanted.length > 0) this.#guest = bootGuest(suite.filepath, wanted.map(nameOf), minutes);
    this.#guest?.catch(() => undefined);
  }

  async runTask(test: Test): Promise<void> {
    if (this.#reasonToSkip !== null) return test.context.skip(this.#reasonToSkip);
    const guest = await this.#guest!;
    const { state, reason } = await guest.outcome(nameOf(test));
    if (state === "skipped") test.context.skip(reason);
    if (state === "failed") throw errorFrom(reason);
    if (reason !== "") test.meta.retried = reason;
  }

  override async onAfterRunSuite(suite: Suite): Promise<void> {
    await super.onAfterRunSuite(suite);
    if (isFile(suite)) await (await this.#guest?.catch(() => null))?.stop();
  }
}

function reasonAgainst(file: string): string | null {
  const isPutOff = file.endsWith(".long.test.ts") && process.env.TURNOUT_LONG === undefined;
  return isPutOff ? "takes long; run with: npm run test:ipvs" : reasonNotToBoot();
}

function isFile(suite: Suite): suite is Suite & { readonly filepath: string } {
  return "filepath" in suite;
}

function nameOf(task: Task): string {
  return testName(getNames(task).slice(1));
}

/** Where it failed is part of the message; here nothing failed. */
function errorFrom(reason: string): Error {
  const error = new Error(reason);
  error.stack = "";
  return error;
}
