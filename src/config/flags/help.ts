// The help text: every flag that is not deprecated, in groups, wrapped to the width of the terminal.
import { type Flag, type FlagName, flagAt, flagNames, type Given, groups } from "./table.ts";
import { flagTypes } from "./types.ts";

const introduction = `kube-proxy by Turnout: makes Kubernetes Services work on this node. It watches Services, EndpointSlices
and this Node, and keeps the kernel's rules in step with them.`;

export function helpText(width: number): string {
  return `${introduction}\n\n${usageText(width)}`;
}

/** What precedes the error when the arguments are wrong. */
export function usageText(width: number): string {
  return ["Usage:", "  kube-proxy [flags]", ...groups.flatMap((group) => section(group, width)), ""].join(
    "\n",
  );
}

/** Every flag with its effective text, sorted: for the log and for /flagz. */
export function printedFlags(given: Given): readonly (readonly [FlagName, string])[] {
  const shown = flagNames.filter((name) => flagAt(name).removed !== true || given[name] !== undefined);
  return shown.toSorted().map((name) => [name, printedValue(flagAt(name), given[name])] as const);
}

function section(group: string, width: number): string[] {
  const names = flagNames.filter(
    (name) => flagAt(name).group === group && flagAt(name).deprecated === undefined,
  );
  if (names.length === 0) return [];
  return ["", `${group}:`, ...names.flatMap((name) => describe(name, width))];
}

const column = 46;

function describe(name: FlagName, width: number): string[] {
  const flag = flagAt(name);
  const short = flag.short === undefined ? "    " : `-${flag.short}, `;
  const label = flagTypes[flag.type].label;
  const left = `  ${short}--${name}${label === "" ? "" : label.startsWith("version") ? label.slice(7) : ` ${label}`}`;
  const [first, ...rest] = wrap(`${flag.about}${defaultNote(flag)}`, Math.max(40, width - column));
  const head =
    left.length < column ? [`${left.padEnd(column)}${first}`] : [left, `${" ".repeat(column)}${first}`];
  return [...head, ...rest.map((line) => `${" ".repeat(column)}${line}`)];
}

function defaultNote(flag: Flag): string {
  if (flag.defaultText !== undefined) return ` (default: ${flag.defaultText})`;
  if (flag.default === undefined || flag.default === false || flag.default === 0n) return "";
  const text = printedValue(flag, undefined);
  return text === "" || text === "0" || text === "[]" ? "" : ` (default ${text})`;
}

function printedValue({ type, default: fallback }: Flag, given: unknown): string {
  const value = given ?? fallback;
  if (value === undefined)
    return type === "bool" || type === "version" ? "false" : type === "strings" ? "[]" : "";
  return (flagTypes[type].print as (value: unknown) => string)(value);
}

function wrap(text: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1)!;
    if (line !== "" && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines;
}
