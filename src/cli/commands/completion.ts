// `turnout completion`: scripts that complete commands and flags in the user's shell.

import { modeNames } from "../../inspect/target-config.ts";
import type { CommandWorld } from "./kube-proxy.ts";

export const completionHelp = `turnout completion: completion for a shell

Usage: turnout completion bash|zsh|fish

Examples:
  source <(turnout completion bash)
  turnout completion zsh > "\${fpath[1]}/_turnout"
  turnout completion fish > ~/.config/fish/completions/turnout.fish
`;

/** What can follow a command. */
export type Follows = { readonly flags: readonly string[]; readonly words: readonly string[] };

type Commands = ReadonlyMap<string, Follows>;

const shells: Readonly<Record<string, (commands: Commands) => string>> = { bash, zsh, fish };

const sources = ["files:", "kubeconfig:", "api", "playground", "daemon"];

/** What can follow a flag; of others files are offered. */
const values: Readonly<Record<string, readonly string[]>> = {
  "--mode": modeNames,
  "--from": modeNames,
  "--to": modeNames,
  "--source": sources,
  "--against": sources,
  "--node": ["node-a", "node-b"],
  "--nftables-ownership": ["plain", "owned"],
  "--config-changes": ["restart", "apply", "apply-live-only"],
  "--health-answers": ["honest", "upstream"],
  "-o": ["text", "json"],
};
const rendered = ["routes", "json", ...modeNames];

const switches = ["--live", "--once", "--help"];

/** `--mode=`: what takes a value says so. */
const spelled = (flag: string) => (flag.startsWith("--") && !switches.includes(flag) ? `${flag}=` : flag);

export function completion(argv: readonly string[], world: CommandWorld, commands: Commands): number {
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
  world.stdout(script(commands));
  return 0;
}

const follows = ({ flags, words }: Follows) => [...words, ...flags.map(spelled)].join(" ");

const valueCases = (line: (flag: string, list: readonly string[]) => string) =>
  Object.entries(values)
    .map(([flag, list]) => line(flag, list))
    .join("\n");

function bash(commands: Commands): string {
  // Bash takes a line apart at "=" and ":", too.
  return `_turnout() {
  COMPREPLY=()
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" words
  if [ "$word" = "=" ]; then word=""
  elif [ "$before" = "=" ]; then before="\${COMP_WORDS[COMP_CWORD-2]}"
  fi
  case "\${COMP_WORDS[1]} $before" in
    "render -o") words="${rendered.join(" ")}" ;;
${valueCases((flag, list) => `    *" ${flag}") words="${list.join(" ")}" ;;`)}
    *" --config"|*" --script"|*" --manifests"|*" :") return ;;
    *) case "\${COMP_WORDS[1]}" in
${[...commands].map(([name, each]) => `      ${name}) words="${follows(each)}" ;;`).join("\n")}
    esac ;;
  esac
  [ "$COMP_CWORD" = 1 ] && words="${[...commands.keys()].join(" ")}"
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  case "\${COMPREPLY[0]}" in *=|*:) compopt -o nospace 2>/dev/null ;; esac
}
complete -o default -F _turnout turnout
`;
}

function zsh(commands: Commands): string {
  return `#compdef turnout
_turnout() {
  local before="$words[CURRENT-1]"
  if (( CURRENT == 2 )); then
    compadd -- ${[...commands.keys()].join(" ")}
    return
  fi
  if [[ "$PREFIX" == --*=* ]]; then
    before="\${PREFIX%%=*}"
    compset -P "*="
  fi
  case "$words[2] $before" in
    "render -o") compadd -- ${rendered.join(" ")}; return ;;
${valueCases((flag, list) => `    *" ${flag}") ${zshValues(list)}; return ;;`)}
    *" --config"|*" --script"|*" --manifests") _files; return ;;
  esac
  case "$words[2]" in
${[...commands]
  .map(([name, { flags, words }]) => {
    const [open, closed] = [true, false].map((wanted) =>
      flags.filter((flag) => spelled(flag).endsWith("=") === wanted),
    );
    const plain = [...words, ...closed!];
    return `    ${name}) compadd -S "=" -- ${open!.join(" ")}; compadd -- ${plain.join(" ")} ;;`;
  })
  .join("\n")}
  esac
}
if [[ "$funcstack[1]" = "_turnout" ]]; then _turnout "$@"; else compdef _turnout turnout; fi
`;
}

/** After `files:` comes a path. */
function zshValues(list: readonly string[]): string {
  if (!list.includes("files:")) return `compadd -- ${list.join(" ")}`;
  const open = list.filter((each) => each.endsWith(":"));
  const closed = list.filter((each) => !each.endsWith(":"));
  return `if compset -P "*:"; then _files; else compadd -S "" -- ${open.join(" ")}; compadd -- ${closed.join(" ")}; fi`;
}

function fish(commands: Commands): string {
  const lines = [...commands].flatMap(([name, { flags, words }]) => {
    const here = `complete -c turnout -n "__fish_seen_subcommand_from ${name}"`;
    return [
      `complete -c turnout -f -n __fish_use_subcommand -a ${name}`,
      ...words.map((word) => `${here} -f -a ${word}`),
      ...flags.map((flag) => {
        const short = flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`;
        const list = name === "render" && flag === "-o" ? rendered : values[flag];
        const takes = switches.includes(flag)
          ? ""
          : list === undefined
            ? " -r"
            : ` -x -a "${list.join(" ")}"`;
        return `${here} ${short}${takes}`;
      }),
    ];
  });
  return `${lines.join("\n")}\n`;
}
