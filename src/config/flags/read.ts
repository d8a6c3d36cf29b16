// Reads an argument list by pflag's rules: `--name=value`, `--name value`, `-v2`, `_` for `-`, flags anywhere.
import { closest } from "../closest.ts";
import { type Parsed, parsed, refused } from "../units/parsed.ts";
import { type FlagName, flagAt, flagNames, type Given } from "./table.ts";
import { flagTypes } from "./types.ts";

export type ReadFlags = {
  readonly given: Given;
  readonly positional: readonly string[];
  /** Deprecated flags that were used, in sentences for stderr. */
  readonly notices: readonly string[];
};

/** Stops at the first error, and at `--help`: the rest is ignored. `others`: more flags to suggest. */
export function readFlags(argv: readonly string[], others: readonly string[] = []): Parsed<ReadFlags> {
  const given: Record<string, unknown> = {};
  const positional: string[] = [];
  const notices: string[] = [];
  const rest = [...argv];
  while (rest.length > 0) {
    const argument = rest.shift()!;
    if (argument === "--") {
      positional.push(...rest.splice(0));
    } else if (!argument.startsWith("-") || argument === "-") {
      positional.push(argument);
    } else {
      const used = argument.startsWith("--") ? readLong(argument, rest, others) : readShort(argument, rest);
      if (!used.ok) return used;
      for (const use of used.value) {
        const set = setFlag(given, use, notices);
        if (!set.ok) return set;
      }
      if (given.help === true) break;
    }
  }
  return parsed({ given: given as Given, positional, notices });
}

type Use = { readonly name: FlagName; readonly value: string };

/** Takes the value of the flag from `rest` where it has none of its own. */
function readLong(argument: string, rest: string[], others: readonly string[]): Parsed<readonly Use[]> {
  const body = argument.slice(2);
  if (body.startsWith("-") || body.startsWith("=")) return refused(`bad flag syntax: ${argument}`);
  const equals = body.indexOf("=");
  const written = equals < 0 ? body : body.slice(0, equals);
  const name = written.replaceAll("_", "-");
  if (!isFlag(name)) return refused(unknownFlag(name, others));
  if (equals >= 0) return parsed([{ name, value: body.slice(equals + 1) }]);
  const value = flagTypes[flagAt(name).type].alone ?? rest.shift();
  return value === undefined ? refused(`flag needs an argument: --${name}`) : parsed([{ name, value }]);
}

/** Short flags may share one dash: `-hv2`. */
function readShort(argument: string, rest: string[]): Parsed<readonly Use[]> {
  const uses: Use[] = [];
  let letters = argument.slice(1);
  while (letters !== "") {
    const letter = letters[0]!;
    const name = shorts.get(letter);
    if (name === undefined) return refused(`unknown shorthand flag: '${letter}' in ${argument}`);
    const alone = flagTypes[flagAt(name).type].alone;
    if (letters[1] === "=") {
      uses.push({ name, value: letters.slice(2) });
      letters = "";
    } else if (alone !== undefined) {
      uses.push({ name, value: alone });
      letters = letters.slice(1);
    } else {
      const value = letters.length > 1 ? letters.slice(1) : rest.shift();
      if (value === undefined) return refused(`flag needs an argument: '${letter}' in ${argument}`);
      uses.push({ name, value });
      letters = "";
    }
  }
  return parsed(uses);
}

function setFlag(given: Record<string, unknown>, { name, value }: Use, notices: string[]): Parsed<null> {
  const { type, short, deprecated } = flagAt(name);
  const parse = flagTypes[type].parse as (text: string, before: unknown) => Parsed<unknown>;
  const result = parse(value, given[name]);
  if (!result.ok) {
    const shown = short === undefined ? `--${name}` : `-${short}, --${name}`;
    return refused(`invalid argument ${JSON.stringify(value)} for "${shown}" flag: ${result.reason}`);
  }
  given[name] = result.value;
  if (deprecated !== undefined) notices.push(`Flag --${name} has been deprecated, ${deprecated}`);
  return parsed(null);
}

function unknownFlag(name: string, others: readonly string[]): string {
  const guess = closest(name, [...others, ...flagNames.filter((each) => flagAt(each).removed !== true)]);
  return `unknown flag: --${name}${guess === null ? "" : ` (did you mean --${guess}?)`}`;
}

const known: ReadonlySet<string> = new Set(flagNames);
const shorts = new Map(
  flagNames.flatMap(
    (name) =>
      flagAt(name)
        .short?.split("")
        .map((s) => [s, name] as const) ?? [],
  ),
);

function isFlag(name: string): name is FlagName {
  return known.has(name);
}
