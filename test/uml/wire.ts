// What a user-mode kernel reports to the machine it runs on: the result of each test, as lines on its console.

/** Tests are named by their titles from the outermost `describe` inwards. */
export type Outcome = {
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped";
  /** Why it failed or was skipped; of one that passed, why it had to be tried again. */
  readonly reason: string;
  readonly seconds: number;
};

const mark = "UML-OUTCOME ";

export function outcomeLine(outcome: Outcome): string {
  return `${mark}${JSON.stringify(outcome)}\n`;
}

/** null: something else was printed. */
export function parseOutcome(line: string): Outcome | null {
  return line.startsWith(mark) ? (JSON.parse(line.slice(mark.length)) as Outcome) : null;
}

export function testName(titles: readonly string[]): string {
  return titles.join(" > ");
}
