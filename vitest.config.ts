// Which tests there are: `unit` is pure and fast (part of `npm run check`), `kernel` needs root and a kernel.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/**/*.test.ts"],
          exclude: ["test/kernel/**", "test/cluster/**", "test/differential/**"],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: "kernel",
          include: ["test/kernel/**/*.test.ts"],
          testTimeout: 240_000,
          hookTimeout: 120_000,
          fileParallelism: false,
          pool: "forks",
        },
      },
      {
        test: {
          name: "cluster",
          include: ["test/cluster/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 240_000,
          fileParallelism: false,
          pool: "forks",
        },
      },
      {
        test: {
          name: "differential",
          include: ["test/differential/**/*.test.ts"],
          testTimeout: 600_000,
          hookTimeout: 120_000,
          fileParallelism: false,
          pool: "forks",
        },
      },
    ],
  },
});
