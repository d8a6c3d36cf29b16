// Completion scripts for bash, zsh and fish, made from the flag tables.
import type { CommandSpec, Flag } from "./flags.ts";
import { helpFlag } from "./help.ts";

/** What completion offers after the name of a command. */
export type Offer = {
  readonly command: string;
  /** Values of the first argument. */
  readonly words: readonly string[];
  readonly flags: readonly Flag[];
};

export const shells: Readonly<Record<string, (offers: readonly Offer[]) => string>> = { bash, zsh, fish };

export function offersOf(specs: readonly CommandSpec[]): Offer[] {
  const offers = specs.map(({ name, args = [], flags }) => ({
    command: name,
    words: args[0]?.choices ?? [],
    flags: [...flags, helpFlag],
  }));
  return [...offers, { command: "help", words: specs.map(({ name }) => name), flags: [] }];
}

/** Every spelling of the flag. */
function spellings({ name, short }: Flag): string[] {
  return short === undefined ? [`--${name}`] : [`-${short}`, `--${name}`];
}

function isSwitch({ value }: Flag): boolean {
  return value === undefined;
}

/** Values to offer; null: files. */
function valuesOf({ choices, suggestions }: Flag): readonly string[] | null {
  return choices ?? suggestions ?? null;
}

/** A shell pattern for each flag that takes a value, with what to offer after it. */
function valueCases(offers: readonly Offer[], line: (values: readonly string[] | null) => string): string {
  return offers
    .flatMap(({ command, flags }) =>
      flags
        .filter((flag) => !isSwitch(flag))
        .map((flag) => {
          const pattern = spellings(flag).map((spelling) => `"${command} ${spelling}"`);
          return `    ${pattern.join("|")}) ${line(valuesOf(flag))} ;;`;
        }),
    )
    .join("\n");
}

function bash(offers: readonly Offer[]): string {
  const offered = ({ words, flags }: Offer) => [
    ...words,
    ...flags.flatMap((flag) =>
      spellings(flag).map((each) => (each.startsWith("--") && !isSwitch(flag) ? `${each}=` : each)),
    ),
  ];
  // Bash splits words at "=" and ":" as well.
  return `_turnout() {
  COMPREPLY=()
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" words
  if [ "$word" = "=" ]; then word=""
  elif [ "$before" = "=" ]; then before="\${COMP_WORDS[COMP_CWORD-2]}"
  fi
  case "\${COMP_WORDS[1]} $before" in
${valueCases(offers, (values) => (values === null ? "return" : `words="${values.join(" ")}"`))}
    *" :") return ;;
    *) case "\${COMP_WORDS[1]}" in
${offers.map((offer) => `      ${offer.command}) words="${offered(offer).join(" ")}" ;;`).join("\n")}
    esac ;;
  esac
  [ "$COMP_CWORD" = 1 ] && words="${offers.map(({ command }) => command).join(" ")}"
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  case "\${COMPREPLY[0]}" in *=|*:) compopt -o nospace 2>/dev/null ;; esac
}
complete -o default -F _turnout turnout
`;
}

function zsh(offers: readonly Offer[]): string {
  return `#compdef turnout
_turnout() {
  local before="$words[CURRENT-1]"
  if (( CURRENT == 2 )); then
    compadd -- ${offers.map(({ command }) => command).join(" ")}
    return
  fi
  if [[ "$PREFIX" == --*=* ]]; then
    before="\${PREFIX%%=*}"
    compset -P "*="
  fi
  case "$words[2] $before" in
${valueCases(offers, (values) => `${zshValues(values)}; return`)}
  esac
  case "$words[2]" in
${offers.map((offer) => `    ${offer.command}) ${zshOffer(offer)} ;;`).join("\n")}
  esac
}
if [[ "$funcstack[1]" = "_turnout" ]]; then _turnout "$@"; else compdef _turnout turnout; fi
`;
}

function zshOffer({ words, flags }: Offer): string {
  const all = flags.flatMap((flag) =>
    spellings(flag).map((each) => ({ each, takesEquals: each.startsWith("--") && !isSwitch(flag) })),
  );
  const names = (takesEquals: boolean) =>
    all.filter((flag) => flag.takesEquals === takesEquals).map(({ each }) => each);
  const [open, closed] = [names(true), [...words, ...names(false)]];
  return [
    ...(open.length === 0 ? [] : [`compadd -S "=" -- ${open.join(" ")}`]),
    ...(closed.length === 0 ? [] : [`compadd -- ${closed.join(" ")}`]),
  ].join("; ");
}

/** A path follows `files:`. */
function zshValues(values: readonly string[] | null): string {
  if (values === null) return "_files";
  const open = values.filter((each) => each.endsWith(":"));
  const closed = values.filter((each) => !each.endsWith(":"));
  if (open.length === 0) return `compadd -- ${closed.join(" ")}`;
  return `if compset -P "*:"; then _files; else compadd -S "" -- ${open.join(" ")}; compadd -- ${closed.join(" ")}; fi`;
}

function fish(offers: readonly Offer[]): string {
  const lines = offers.flatMap(({ command, words, flags }) => {
    const here = `complete -c turnout -n "__fish_seen_subcommand_from ${command}"`;
    return [
      `complete -c turnout -f -n __fish_use_subcommand -a ${command}`,
      ...words.map((word) => `${here} -f -a ${word}`),
      ...flags.map((flag) => {
        const short = flag.short === undefined ? "" : `-s ${flag.short} `;
        return `${here} ${short}-l ${flag.name}${fishValues(flag)}`;
      }),
    ];
  });
  return `${lines.join("\n")}\n`;
}

function fishValues(flag: Flag): string {
  if (isSwitch(flag)) return "";
  const values = valuesOf(flag);
  return values === null ? " -r" : ` -x -a "${values.join(" ")}"`;
}
