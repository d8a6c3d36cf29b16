// Every command of the tool, and what is printed about all of them.

import type { Command } from "../command.ts";
import { helpText } from "../help.ts";
import { blame, blameSpec } from "./blame.ts";
import { completion, completionSpec } from "./completion.ts";
import { diff, diffSpec } from "./diff.ts";
import { doctor, doctorSpec } from "./doctor.ts";
import { explain, explainSpec } from "./explain.ts";
import { flows, flowsSpec } from "./flows.ts";
import { history, historySpec } from "./history.ts";
import { page, pageSpec } from "./page.ts";
import { playground, playgroundSpec } from "./playground.ts";
import { render, renderSpec } from "./render.ts";
import { run, runSpec } from "./run.ts";
import { status, statusSpec } from "./status.ts";
import { top, topSpec } from "./top.ts";
import { whatif, whatifSpec } from "./whatif.ts";

const list: readonly Command[] = [
  { spec: playgroundSpec, run: playground },
  { spec: explainSpec, run: explain },
  { spec: flowsSpec, run: flows },
  { spec: renderSpec, run: render },
  { spec: diffSpec, run: diff },
  { spec: historySpec, run: history },
  { spec: blameSpec, run: blame },
  { spec: whatifSpec, run: whatif },
  { spec: doctorSpec, run: doctor },
  { spec: statusSpec, run: status },
  { spec: pageSpec, run: page },
  { spec: topSpec, run: top },
  { spec: runSpec, run },
  { spec: completionSpec, run: completion(() => list.map(({ spec }) => spec)) },
];

export const commands: ReadonlyMap<string, Command> = new Map(list.map((each) => [each.spec.name, each]));

export const overview = `turnout: a Kubernetes service proxy that is fast, verifiable and explains itself

Usage:
  turnout COMMAND [flags]

Commands:
${list.map(({ spec: { name, summary } }) => `  ${name.padEnd(12)}${summary}`).join("\n")}

"turnout COMMAND --help" prints the flags of a command. bin/kube-proxy is the drop-in replacement for kube-proxy.
`;

/** The page docs/commands.md; `promptHelp` lists the commands at the playground's prompt. */
export function referencePage(promptHelp: readonly string[]): string {
  const section = ({ spec }: Command) => `## turnout ${spec.name}\n\n\`\`\`text\n${helpText(spec)}\`\`\`\n`;
  const prompt = `### At the prompt of the playground\n\n\`\`\`text\n${promptHelp.join("\n")}\n\`\`\`\n`;
  return [
    "# Commands\n\nGenerated from the flag tables; `turnout COMMAND --help` prints the same text.\n",
    `\`\`\`text\n${overview}\`\`\`\n`,
    ...list.flatMap((each) => (each.spec === playgroundSpec ? [section(each), prompt] : [section(each)])),
  ].join("\n");
}
