// What `-o` may say where there are two ways to print.

import { UsageError } from "../inspect/usage-error.ts";
import type { OwnFlags } from "./own-flags.ts";

export function outputOf({ o, output = "text" }: OwnFlags): "text" | "json" {
  const text = o ?? output;
  if (text === "text" || text === "json") return text;
  throw new UsageError(`-o must be text or json, not ${JSON.stringify(text)}`);
}
