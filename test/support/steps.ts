// Commands and outputs that a page of the docs shows.

export type Step = {
  readonly where: string;
  readonly command: string;
  readonly output: string[];
};

/** The commands of the blocks of these kinds, with their output. */
export function stepsOf(page: string, ...kinds: readonly string[]): Step[] {
  const blocks = new RegExp(`^\`\`\`(${kinds.join("|")})\\n([\\s\\S]*?)^\`\`\``, "gm");
  return [...page.matchAll(blocks)].flatMap(([, where = "", body = ""]) => {
    const steps: Step[] = [];
    for (const line of body.trimEnd().split("\n")) {
      const command = /^[$>] (.*)/.exec(line)?.[1];
      if (command !== undefined) steps.push({ where, command, output: [] });
      else steps.at(-1)?.output.push(line);
    }
    return steps;
  });
}

/**
 * Whether lines are as shown, where `…` stands for any text, and a line `· …` for one or more such lines. Column widths vary with the
 * content, such as an age of 9s or 10s.
 */
export function areAsShown(lines: readonly string[], shown: readonly string[]): boolean {
  const pattern = new RegExp(`^${shown.map((line) => `${patternOf(line)}\n`).join("")}$`);
  return pattern.test(lines.map((line) => `${line}\n`).join(""));
}

function patternOf(line: string): string {
  if (line.trim() === "· …") return " *· .*(?:\n *· .*)*";
  const literal = line.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return literal.join(".*").replaceAll(/ {2,}/g, " +");
}
