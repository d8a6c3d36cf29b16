// Which tests there are: `unit` is fast (part of `npm run check`); the others need root, a kernel, and partly assets.
import { defineConfig } from "vitest/config";

/** For what is expected to come soon; a busy machine has it come later. */
const expect = { poll: { timeout: 30_000 } };

/** Daemons under test must not serve the socket of this machine. */
const env = { TURNOUT_STATUS_SOCKET: "" };

/** In namespaces of their own; they wait for time-outs most of the time, so three share two cores. */
const kernel = { ...serial("kernel", 1, 240_000).test, fileParallelism: true, maxWorkers: 2 };

/** In user-mode kernels, two at a time, since each uses one core. */
const uml = {
  ...serial("uml", 4, 10_800_000).test,
  runner: "./test/uml/runner.ts",
  fileParallelism: true,
  maxWorkers: 2,
  retry: 0,
};

/** One project after the other, and their files too: programs are compared, and share the machine's two cores. */
function serial(name: string, order: number, testTimeout: number) {
  return {
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      testTimeout,
      env,
      hookTimeout: 240_000,
      expect,
      fileParallelism: false,
      pool: "forks" as const,
      sequence: { groupOrder: order },
      // Real packets and real time: a busy machine may be late once. The report lists every retried test.
      retry: 1,
    },
  };
}

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "playground/**/*.test.ts", "test/**/*.test.ts"],
          exclude: ["test/kernel/**", "test/cluster/**", "test/differential/**", "test/uml/**"],
          testTimeout: 120_000,
          expect,
          sequence: { groupOrder: 0 },
          maxWorkers: 2,
          // A process for each file would spend more time on loading modules than on tests.
          isolate: false,
          retry: 0,
        },
      },
      { test: kernel },
      serial("differential", 2, 120_000),
      serial("cluster", 3, 120_000),
      { test: uml },
    ],
  },
});
