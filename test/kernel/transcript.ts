// The comparison of what a page of the docs shows with what is really printed.
import { expect } from "vitest";
import { areAsShown } from "../support/steps.ts";

export function expectTranscript(command: string, lines: readonly string[], output: readonly string[]): void {
  // Compare all lines when one differs; placeholders would hide the others.
  expect({ command, lines: areAsShown(lines, output) ? output : lines }).toEqual({ command, lines: output });
}
