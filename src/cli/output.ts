// What `-o` may say where there are two ways to print.
import { Mistake } from "./mistake.ts";

export function outputOf(text = "text"): "text" | "json" {
  if (text === "text" || text === "json") return text;
  throw new Mistake(`-o must be text or json, not ${JSON.stringify(text)}`);
}
