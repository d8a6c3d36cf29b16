// Every command of the tool: its name, what it is for, its help, and what runs it.

import { completion, completionHelp, type Follows } from "./completion.ts";
import { diff, diffHelp } from "./diff.ts";
import { doctor, doctorHelp } from "./doctor.ts";
import { explain, explainHelp } from "./explain.ts";
import type { CommandWorld } from "./kube-proxy.ts";
import { playground, playgroundHelp } from "./playground.ts";
import { render, renderHelp } from "./render.ts";
import { run, runHelp } from "./run.ts";
import { status, statusHelp } from "./status.ts";

export type Command = {
  readonly summary: string;
  readonly help: string;
  readonly run: (argv: readonly string[], world: CommandWorld, signal: AbortSignal) => Promise<number>;
};

export const commands: Readonly<Record<string, Command>> = {
  playground: {
    summary: "a cluster on this machine to try things on",
    help: playgroundHelp,
    run: playground,
  },
  explain: { summary: "why a packet goes where it goes", help: explainHelp, run: explain },
  render: { summary: "what would be on a node, without touching anything", help: renderHelp, run: render },
  diff: {
    summary: "what another cluster state would change, or how the kernel differs",
    help: diffHelp,
    run: diff,
  },
  doctor: { summary: "what another mode would change, and for whom", help: doctorHelp, run: doctor },
  status: { summary: "how the daemon on this machine is doing", help: statusHelp, run: status },
  run: { summary: "the daemon: kube-proxy's flags and a few of our own", help: runHelp, run },
  completion: {
    summary: "completion for bash, zsh or fish",
    help: completionHelp,
    run: async (argv, world) => completion(argv, world, wordsOf()),
  },
};

export const overview = `turnout: a Kubernetes service proxy that is fast, verifiable and explains itself

Usage: turnout COMMAND [flags]

${Object.entries(commands)
  .map(([name, { summary }]) => `  ${name.padEnd(12)} ${summary}`)
  .join("\n")}

turnout COMMAND --help tells more. bin/kube-proxy is the drop-in for kube-proxy.
`;

/** The page docs/commands.md; `prompt` is the help at the prompt of the playground. */
export function referencePage(promptHelp: readonly string[]): string {
  const section = ([name, { help }]: [string, Command]) =>
    `## turnout ${name}\n\n\`\`\`text\n${help}\`\`\`\n`;
  const prompt = `### At the prompt of the playground\n\n\`\`\`text\n${promptHelp.join("\n")}\n\`\`\`\n`;
  return [
    "# Commands\n\nMade from the code; `turnout COMMAND --help` prints the same.\n",
    `\`\`\`text\n${overview}\`\`\`\n`,
    ...Object.entries(commands).flatMap((entry) =>
      entry[0] === "playground" ? [section(entry), prompt] : [section(entry)],
    ),
  ].join("\n");
}

/** What can follow each command: the flags its help lists, and words. */
function wordsOf(): ReadonlyMap<string, Follows> {
  const words: Readonly<Record<string, readonly string[]>> = {
    doctor: ["migrate"],
    completion: ["bash", "zsh", "fish"],
  };
  const listed = Object.entries(commands).map(([name, { help }]): [string, Follows] => {
    const flags = [...help.matchAll(/^ {2,}(--?[a-z][a-z-]*)/gm)].map(([, flag = ""]) => flag);
    return [name, { flags: [...new Set([...flags, "--help"])].sort(), words: words[name] ?? [] }];
  });
  return new Map([...listed, ["help", { flags: [], words: Object.keys(commands) }]]);
}
