// Commands on the bundled example at a fixed time, and their golden files.
import { join } from "node:path";
import type { RunCommand } from "../../src/cli/command.ts";
import { systemClock } from "../../src/observe/clock.ts";
import { outputWith } from "./command-output.ts";

export const shop = ["--source", `files:${join(import.meta.dirname, "shop")}`, "--node=node-a"];

export const outputOf = (command: RunCommand, ...argv: string[]) =>
  outputWith(command, argv, { clock: { ...systemClock, wall: () => 1_000_000 } });

export const golden = (name: string) => join(import.meta.dirname, "..", "golden", "commands", name);
