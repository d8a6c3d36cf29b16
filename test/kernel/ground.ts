// Provides a playground for a test suite; after a failed test a new one is started.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { Playground, type PlaygroundOptions } from "../../playground/playground.ts";
import { reasonToSkip } from "./netns.ts";

const program = join(import.meta.dirname, "..", "..", "dist", "turnout.cjs");

/** null when a playground can run on this machine. */
export function reasonToSkipPlayground(): string | null {
  return existsSync(program) ? reasonToSkip() : "not built; build with: npm run build";
}

/** Call it inside `describe`. */
export function playgroundFor(
  mode: PlaygroundOptions["mode"],
  reason: string | null,
): { readonly playground: Playground } {
  let playground: Playground;
  const start = async () => {
    playground = await Playground.start({ mode, port: 0, program: [process.execPath, program] });
  };
  beforeAll(async () => {
    if (reason === null) await start();
  });
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));
  afterEach(async ({ task }) => {
    if (task.result?.state !== "fail") return;
    await playground.close();
    await start();
  });
  afterAll(() => playground?.close());
  return {
    get playground() {
      return playground;
    },
  };
}
