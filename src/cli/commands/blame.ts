// `turnout blame TO`: which change made an address and port handle packets as they are handled now.

import type { FrontendChange } from "../../explain/compare.ts";
import { parseTo, toExamples } from "../../explain/question.ts";
import type { HistoryEntry, ServiceChange } from "../../history/entry.ts";
import { causesOf, changeLines, printHead, writtenWords } from "../../history/print.ts";
import { type HistoryAnswer, historySocket, readHistory } from "../../inspect/history.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { command } from "../command.ts";
import type { CommandSpec } from "../flags.ts";
import { printMoment } from "../moment.ts";
import { span } from "../span.ts";
import { daemonNodeFlag, daemonSourceFlag, outputFlag } from "../target-flags.ts";

export const blameSpec = {
  name: "blame",
  summary: "find the change that made an address and port what they are now",
  usage: ["TO [flags]"],
  args: [{ name: "TO", description: toExamples }],
  flags: [daemonSourceFlag, daemonNodeFlag, outputFlag],
  notes: [
    "Requires root. Prints the last change of the history that concerns TO, with what happened to its packets before and after.",
  ],
  exitCodes: { 0: "found", 1: "there is no history", 3: "no change of it is in the history" },
  examples: [
    "turnout blame 172.30.0.10:80",
    "turnout blame svc/shop/web:http --source=playground --node=node-a",
  ],
} as const satisfies CommandSpec;

export const blame = command(blameSpec, async ({ flags, args: [toText] }, world) => {
  const { source = "daemon", node = "node-a", output = "text" } = flags;
  if (toText === undefined) throw new UsageError("TO is required, for example: turnout blame 172.30.0.10:80");
  const to = parseTo(toText);
  if (!to.ok) throw new UsageError(to.reason);
  const socket = await historySocket(source, node, world.environment);
  const answer = await readHistory(socket, { to: toText, limit: "1", packets: "true" });
  const [found] = answer.changes;
  if (output === "json")
    world.stdout(`${JSON.stringify({ history: answer.history, change: found ?? null }, null, 2)}\n`);
  else world.stdout(found === undefined ? printNone(toText, answer) : printBlame(found, world.clock.wall()));
  if (answer.history.limits.bytes === 0) return 1;
  return found === undefined ? 3 : 0;
});

function printNone(toText: string, { history }: HistoryAnswer): string {
  const none = history.beginsAt === null ? "" : `no change in the history affects packets to ${toText}\n`;
  return `${none}${printHead(history, printMoment)}`;
}

function printBlame(entry: HistoryEntry, now: number): string {
  const rows = [
    ["changed", `${printMoment(entry.at)} (${span(now - entry.at)} ago)`],
    ["because", causesOf(entry)],
    ...entry.changes.flatMap(changeRows),
    ["written", writtenWords(entry.written).replace("written: ", "")],
  ] as const;
  return rows.map(([name, text]) => `${name.padEnd(9)} ${text}\n`).join("");
}

function changeRows(change: ServiceChange): (readonly [string, string])[] {
  const { family, frontends = [] } = change;
  const lines = changeLines(change).map((line) => line.trim());
  return [
    ["what", `${change.port}  ${change.protocol}, ${family}`],
    ...lines.map((line) => ["", line] as const),
    ...frontends.flatMap(frontendLines).map((line) => ["", line] as const),
  ];
}

function frontendLines({ frontend, fates: results }: FrontendChange): string[] {
  return [
    frontend,
    ...results.flatMap(({ senders, before, after }) => [
      `  ${senders.length === 3 ? "everybody" : senders.join(", ")}`,
      `  - ${before ?? "not a Service address"}`,
      `  + ${after ?? "not a Service address"}`,
    ]),
  ];
}
