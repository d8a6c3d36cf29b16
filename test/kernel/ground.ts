// A playground for the tests of a suite; behind one that fails there is a new one, since what that left would fail it again.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { Playground, type PlaygroundOptions } from "../../playground/playground.ts";
import { reasonToSkip } from "./netns.ts";

const program = join(import.meta.dirname, "..", "..", "dist", "turnout.cjs");

/** null when a playground can be had here. */
export function reasonToSkipPlayground(): string | null {
  return existsSync(program) ? reasonToSkip() : "not built; build with: npm run build";
}

/** To be called while a suite is being described. */
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
