// Which tests there are: `unit` is fast (part of `npm run check`); the others need root, a kernel, and partly assets.
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/longest-first.ts";

/** For what is expected to come soon; a busy machine has it come later. */
const expect = { poll: { timeout: 30_000 } };

/** Daemons under test must not serve the socket of this machine. */
const env = { TURNOUT_STATUS_SOCKET: "" };

/**
 * Files of these projects run side by side, each in namespaces or in a kernel of its own: two thirds of the time they wait, for
 * time-outs and for programs to start, so that six share two cores.
 */
function waiting(name: string, testTimeout: number) {
  return {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout,
    env,
    hookTimeout: 240_000,
    expect,
    pool: "forks" as const,
    sequence: { groupOrder: 1 },
    maxWorkers: 6,
    // Real packets and real time: a busy machine may be late once. The report lists every retried test.
    retry: 1,
  };
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "playground/**/*.test.ts", "test/**/*.test.ts"],
          exclude: [
            "test/kernel/**",
            "test/cluster/**",
            "test/differential/**",
            "test/browser/**",
            "test/uml/**",
          ],
          testTimeout: 120_000,
          expect,
          sequence: { groupOrder: 0 },
          maxWorkers: 2,
          // A process for each file would spend more time on loading modules than on tests.
          isolate: false,
          retry: 0,
        },
      },
      { test: waiting("kernel", 240_000) },
      { test: waiting("browser", 120_000) },
      { test: waiting("differential", 120_000) },
      { test: waiting("cluster", 120_000) },
      // In a user-mode kernel, whose own runner retries.
      { test: { ...waiting("uml", 10_800_000), runner: "./test/uml/runner.ts", retry: 0 } },
    ],
  },
});
