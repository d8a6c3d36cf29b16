// Takes the flags of our own commands out of a command line; what is left belongs to somebody else.
import { UsageError } from "../inspect/usage-error.ts";

export type OwnFlags = Readonly<Record<string, string | undefined>>;

/** `--name=value` and `--name value` for the given names; the last one wins. */
export function splitOwnFlags(
  argv: readonly string[],
  names: readonly string[],
): { readonly given: OwnFlags; readonly rest: readonly string[] } {
  const given: Record<string, string | undefined> = {};
  const rest: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i]!;
    const [, name, value] = /^--?([a-z-]+)(?:=([\s\S]*))?$/.exec(argument) ?? [];
    if (name === undefined || !names.includes(name)) rest.push(argument);
    else {
      given[name] = value ?? argv[++i];
      if (given[name] === undefined) throw new UsageError(`--${name} needs a value; --help lists them`);
    }
  }
  return { given, rest };
}
