// Commands and outputs that a page of the docs shows, and the comparison with what is really printed.
import { expect } from "vitest";

export type Step = {
  readonly where: "console" | "playground";
  readonly command: string;
  readonly output: string[];
};

/** The commands of the `console` and `playground` blocks, with their output. */
export function stepsOf(page: string): Step[] {
  return [...page.matchAll(/^```(console|playground)\n([\s\S]*?)^```/gm)].flatMap(([, where, body = ""]) => {
    const steps: Step[] = [];
    for (const line of body.trimEnd().split("\n")) {
      const command = /^[$>] (.*)/.exec(line)?.[1];
      if (command !== undefined) steps.push({ where: where as Step["where"], command, output: [] });
      else steps.at(-1)?.output.push(line);
    }
    return steps;
  });
}

export function expectTranscript(command: string, lines: readonly string[], output: readonly string[]): void {
  const wrong = lines.length !== output.length || lines.some((line, i) => !patternOf(output[i]!).test(line));
  // Compare all lines when one differs; placeholders would hide the others.
  expect({ command, lines: wrong ? lines : output }).toEqual({ command, lines: output });
}

/** Column widths vary with the content, such as an age of 9s or 10s. */
function patternOf(line: string): RegExp {
  const literal = line.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${literal.join(".*").replaceAll(/ {2,}/g, " +")}$`);
}
