// What `-o` may say where there are two ways to print.

import type { OwnFlags } from "./own-flags.ts";
import { UsageError } from "./usage-error.ts";

export function outputOf({ o, output = "text" }: OwnFlags): "text" | "json" {
  const text = o ?? output;
  if (text === "text" || text === "json") return text;
  throw new UsageError(`-o must be text or json, not ${JSON.stringify(text)}`);
}
