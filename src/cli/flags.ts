// The flag table of a command, and the reader that turns an argument list into typed values by it.
import { parseArgs } from "node:util";
import { closest } from "../config/closest.ts";
import { alternatives, UsageError } from "../inspect/usage-error.ts";

export type Flag = {
  /** Long name, without dashes. */
  readonly name: string;
  readonly short?: string;
  /** Placeholder of the value, such as FILE; absent for a switch. */
  readonly value?: string;
  /** May be passed several times: its value is the list of all. */
  readonly repeats?: true;
  /** The only values allowed. */
  readonly choices?: readonly string[];
  /** Values that completion offers where others are allowed as well; one that ends with ":" is continued. */
  readonly suggestions?: readonly string[];
  /** A value for error messages. */
  readonly example?: string;
  /** The value when the flag is absent, as help prints it. */
  readonly fallback?: string;
  readonly description: string;
  /** Earlier names: accepted, but neither in help nor in completion. */
  readonly aliases?: readonly string[];
};

export type Argument = {
  readonly name: string;
  /** The only values allowed. */
  readonly choices?: readonly string[];
  readonly description: string;
};

export type CommandSpec<Flags extends readonly Flag[] = readonly Flag[]> = {
  readonly name: string;
  readonly summary: string;
  /** What follows the name of the command, a line for each form. */
  readonly usage: readonly string[];
  readonly args?: readonly Argument[];
  readonly flags: Flags;
  readonly notes?: readonly string[];
  readonly exitCodes?: Readonly<Record<number, string>>;
  readonly examples: readonly [string, ...string[]];
};

type ValueOf<F extends Flag> = F extends { readonly repeats: true } ? readonly string[] : OneValueOf<F>;

type OneValueOf<F extends Flag> = F extends { readonly value: string }
  ? F extends { readonly choices: readonly (infer Choice)[] }
    ? Choice
    : string
  : true;

/** Values by the flag's long name. */
export type Values<Flags extends readonly Flag[]> = {
  readonly [F in Flags[number] as F["name"]]?: ValueOf<F>;
};

export type CommandLine<Flags extends readonly Flag[]> = {
  readonly flags: Values<Flags>;
  readonly args: readonly string[];
};

/** `--name=value`, `--name value`, `-o json` or `-ojson`; the last one wins, unless the flag repeats. Everything after `--` is an argument. */
export function readCommandLine<Flags extends readonly Flag[]>(
  spec: CommandSpec<Flags>,
  argv: readonly string[],
): CommandLine<Flags> {
  const values: Record<string, string | true | readonly string[]> = {};
  const args: string[] = [];
  for (const token of tokensOf(spec.flags, argv)) {
    if (token.kind === "positional") args.push(token.value);
    if (token.kind !== "option") continue;
    const flag = flagNamed(spec.flags, token.name);
    if (flag === undefined) throw new UsageError(unknownFlag(argv[token.index]!, spec));
    const value = readValue(flag, token);
    const earlier = values[flag.name] ?? [];
    values[flag.name] = flag.repeats === true ? [...(earlier as readonly string[]), value as string] : value;
  }
  const most = spec.args?.length ?? 0;
  if (args.length > most) throw new UsageError(unexpectedArgument(args[most]!, spec));
  return { flags: values as Values<Flags>, args };
}

/** Takes the flags of the table out of an argument list; the rest is for another reader. */
export function splitFlags<Flags extends readonly Flag[]>(
  flags: Flags,
  argv: readonly string[],
): { readonly flags: Values<Flags>; readonly rest: readonly string[] } {
  const values: Record<string, string | true> = {};
  const taken = new Set<number>();
  for (const token of tokensOf(flags, argv)) {
    const flag = token.kind === "option" ? flagNamed(flags, token.name) : undefined;
    if (token.kind !== "option" || flag === undefined) continue;
    values[flag.name] = readValue(flag, token);
    taken.add(token.index);
    if (token.inlineValue === false) taken.add(token.index + 1);
  }
  return { flags: values as Values<Flags>, rest: argv.filter((_, i) => !taken.has(i)) };
}

/** Whether `--help` or `-h` is requested, rather than passed as an argument after `--`. */
export function requestsHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  const flags = end < 0 ? argv : argv.slice(0, end);
  return flags.includes("--help") || flags.includes("-h");
}

/** As messages name it: `-o` where there is a short name. */
export function flagLabel({ name, short }: Flag): string {
  return short === undefined ? `--${name}` : `-${short}`;
}

type Token = NonNullable<ReturnType<typeof parseArgs>["tokens"]>[number];
type OptionToken = Extract<Token, { kind: "option" }>;

function tokensOf(flags: readonly Flag[], argv: readonly string[]): readonly Token[] {
  const options = flags.flatMap(({ name, short, value, aliases = [] }) => {
    const type = value === undefined ? ("boolean" as const) : ("string" as const);
    const main = [name, short === undefined ? { type } : { type, short }] as const;
    return [main, ...aliases.map((alias) => [alias, { type }] as const)];
  });
  const args = argv.map((argument) => withTwoDashes(argument, flags));
  const { tokens } = parseArgs({
    args,
    options: Object.fromEntries(options),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  return tokens;
}

/** Long names are accepted with a single dash, as in Go's flag package. */
function withTwoDashes(argument: string, flags: readonly Flag[]): string {
  const [, name = ""] = /^-([a-z][a-z-]+)(?:=|$)/.exec(argument) ?? [];
  return flagNamed(flags, name) === undefined ? argument : `-${argument}`;
}

function flagNamed(flags: readonly Flag[], name: string): Flag | undefined {
  return flags.find((flag) => flag.name === name || flag.aliases?.includes(name));
}

function readValue(flag: Flag, { value, inlineValue, rawName }: OptionToken): string | true {
  const label = flagLabel(flag);
  if (flag.value === undefined) {
    if (value === undefined) return true;
    throw new UsageError(`${label} takes no value`);
  }
  if (value === undefined || (!inlineValue && value.startsWith("--")))
    throw new UsageError(`${label} requires a value${exampleOf(flag)}`);
  // `-o=json`
  const text = rawName.startsWith("--") ? value : value.replace(/^=/, "");
  return checkedValue(flag, text, label);
}

/** `label` names the flag, or the variable it was read from. */
export function checkedValue({ choices }: Flag, text: string, label: string): string {
  if (choices === undefined || choices.includes(text)) return text;
  throw new UsageError(`${label} must be ${alternatives(choices)}, not ${JSON.stringify(text)}`);
}

function exampleOf(flag: Flag): string {
  const example = flag.example ?? flag.choices?.[0];
  if (example === undefined) return "";
  const label = flagLabel(flag);
  return `, for example ${label}${label.startsWith("--") ? "=" : " "}${example}`;
}

function unknownFlag(argument: string, { name, flags }: CommandSpec): string {
  const [written = ""] = argument.split("=", 1);
  const near =
    written.length < 3
      ? null
      : closest(
          written.replace(/^-+/, ""),
          flags.map((flag) => flag.name),
        );
  const hint = near === null ? `see turnout ${name} --help` : `did you mean --${near}?`;
  return `unknown flag ${JSON.stringify(written)}; ${hint}`;
}

/** A value without its flag is recognised: `render nftables`. */
function unexpectedArgument(argument: string, { flags, examples }: CommandSpec): string {
  const hints = flags.flatMap((flag) => {
    const near = closest(argument, flag.choices ?? []);
    return near === null ? [] : [`did you mean ${flagLabel(flag)} ${near}?`];
  });
  return `unexpected argument ${JSON.stringify(argument)}; ${hints.at(-1) ?? `example: ${examples[0]}`}`;
}
