// `turnout completion`: scripts that complete commands and flags in the user's shell.
import type { CommandWorld } from "./command.ts";

export const completionHelp = `turnout completion: completion for a shell

Usage: turnout completion bash|zsh|fish

Examples:
  source <(turnout completion bash)
  turnout completion zsh > "\${fpath[1]}/_turnout"
  turnout completion fish > ~/.config/fish/completions/turnout.fish
`;

type Words = ReadonlyMap<string, readonly string[]>;

const shells: Readonly<Record<string, (words: Words) => string>> = { bash, zsh, fish };

export function completion(argv: readonly string[], world: CommandWorld, words: Words): number {
  const [shell = "", more] = argv;
  if (shell === "--help" || shell === "-h") {
    world.stdout(completionHelp);
    return 0;
  }
  const script = Object.hasOwn(shells, shell) ? shells[shell] : undefined;
  if (script === undefined || more !== undefined) {
    const unknown = shell !== "" && script === undefined;
    const why = unknown ? `there is none for ${JSON.stringify(shell)}; ` : "";
    world.stderr(
      `turnout completion: ${why}say for which shell, bash, zsh or fish, for example: turnout completion bash\n`,
    );
    return 1;
  }
  world.stdout(script(words));
  return 0;
}

function bash(words: Words): string {
  const cases = [...words].map(([name, flags]) => `    ${name}) words="${flags.join(" ")}" ;;`).join("\n");
  return `_turnout() {
  local words
  case "\${COMP_WORDS[1]}" in
${cases}
  esac
  [ "$COMP_CWORD" = 1 ] && words="${[...words.keys()].join(" ")}"
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _turnout turnout
`;
}

function zsh(words: Words): string {
  const cases = [...words].map(([name, flags]) => `    ${name}) compadd -- ${flags.join(" ")} ;;`).join("\n");
  return `#compdef turnout
_turnout() {
  if (( CURRENT == 2 )); then
    compadd -- ${[...words.keys()].join(" ")}
    return
  fi
  case "$words[2]" in
${cases}
  esac
  _files
}
compdef _turnout turnout
`;
}

function fish(words: Words): string {
  const lines = [...words].flatMap(([name, flags]) => [
    `complete -c turnout -n __fish_use_subcommand -a ${name}`,
    ...flags.map(
      (flag) => `complete -c turnout -n "__fish_seen_subcommand_from ${name}" -l ${flag.slice(2)}`,
    ),
  ]);
  return `${lines.join("\n")}\n`;
}
