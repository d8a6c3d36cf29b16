// Prints the help of a command from its flag table.
import { alternatives } from "../inspect/usage-error.ts";
import type { CommandSpec, Flag } from "./flags.ts";

/** Accepted by every command. */
export const helpFlag: Flag = { name: "help", short: "h", description: "print this help" };

const columns = 110;

export function helpText(spec: CommandSpec): string {
  const { name, summary, usage, args = [], flags, notes = [], exitCodes = {}, examples } = spec;
  const codes = Object.entries(exitCodes);
  return [
    `turnout ${name}: ${summary}`,
    section(
      "Usage",
      usage.map((line) => `  turnout ${name} ${line}`),
    ),
    section("Arguments", table(args.map((each) => [each.name, each.description]))),
    section("Flags", table([...flags, helpFlag].map((flag) => [flagColumn(flag), flagDescription(flag)]))),
    ...notes.map(paragraph),
    section("Exit codes", table(codes)),
    section(
      "Examples",
      examples.map((line) => `  ${line}`),
    ),
  ]
    .filter((part) => part !== "")
    .join("\n\n")
    .concat("\n");
}

/** Indented lines are kept as they are. */
function paragraph(text: string): string {
  const lines = text.split("\n");
  return lines.flatMap((line) => (line.startsWith(" ") ? [line] : wrapped(line, columns))).join("\n");
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? "" : `${title}:\n${lines.join("\n")}`;
}

function flagColumn({ name, short, value }: Flag): string {
  return `${short === undefined ? "   " : `-${short},`} --${name}${value === undefined ? "" : `=${value}`}`;
}

function flagDescription({ description, choices, fallback }: Flag): string {
  const allowed = choices === undefined ? [] : [alternatives(choices)];
  const absent = fallback === undefined ? [] : [`default ${fallback}`];
  const values = [...allowed, ...absent].join("; ");
  return values === "" ? description : `${description} (${values})`;
}

/** Two columns; the second is wrapped. */
function table(rows: readonly (readonly [string, string])[]): string[] {
  const left = Math.max(0, ...rows.map(([name]) => name.length)) + 4;
  return rows.flatMap(([name, text]) =>
    wrapped(text, columns - left).map((line, i) => `  ${(i === 0 ? name : "").padEnd(left - 2)}${line}`),
  );
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
