// `turnout history [SERVICE]`: what changed, when, why, and what was written to the kernel.
import { parseTo, type To } from "../../explain/question.ts";
import type { HistoryEntry } from "../../history/entry.ts";
import { printEntry, printHead } from "../../history/print.ts";
import { type HistoryAnswer, historySocket, readHistory } from "../../inspect/history.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { sleep } from "../../sources/world.ts";
import { command } from "../command.ts";
import type { CommandSpec } from "../flags.ts";
import { momentExamples, parseMoment, printMoment } from "../moment.ts";
import { daemonNodeFlag, daemonSourceFlag, outputFlag } from "../target-flags.ts";
import type { CommandWorld } from "./kube-proxy.ts";

export const historySpec = {
  name: "history",
  summary: "list what changed, when and why, on the node of a daemon",
  usage: ["[SERVICE] [flags]"],
  args: [{ name: "SERVICE", description: "only changes of this Service, for example shop/web or svc/web" }],
  flags: [
    {
      name: "since",
      value: "TIME",
      example: "10m",
      description: `only changes since then: ${momentExamples}; times without a zone are local`,
    },
    { name: "follow", short: "f", description: "print changes as they are recorded, until interrupted" },
    daemonSourceFlag,
    daemonNodeFlag,
    outputFlag,
  ],
  notes: [
    "Requires root. The daemon keeps 8 MiB and 24 hours of changes by default; --history-size and --history-age of turnout run change that.",
  ],
  exitCodes: { 0: "printed, even if nothing changed", 1: "there is no history" },
  examples: [
    "turnout history --since=10m",
    "turnout history shop/web --since=10:41 --source=playground --node=node-a",
  ],
} as const satisfies CommandSpec;

/** How often --follow asks. */
const pollMs = 500;

export const history = command(historySpec, async ({ flags, args: [service] }, world, signal) => {
  const { since, source = "daemon", node = "node-a", output = "text", follow = false } = flags;
  const query = {
    ...(service === undefined ? {} : { to: serviceText(service) }),
    ...(since === undefined ? {} : { since: String(parseMoment(since, world.clock.wall(), "--since")) }),
  };
  const socket = await historySocket(source, node, world.environment);
  const answer = await readHistory(socket, query);
  if (follow) return followFrom(answer, socket, query, output, world, signal);
  if (output === "json") world.stdout(`${JSON.stringify(answer, null, 2)}\n`);
  else world.stdout(printHistory(answer));
  return answer.history.limits.bytes === 0 ? 1 : 0;
});

/** `svc/shop/web`, as the socket reads it. */
function serviceText(service: string): string {
  const text = service.includes("/") || service.includes(".") ? service : `svc/${service}`;
  const to = parseTo(text);
  if (!to.ok || !isService(to.value))
    throw new UsageError(
      `invalid Service ${JSON.stringify(service)}; use for example shop/web, svc/web or shop/web:http`,
    );
  return text;
}

function isService(to: To): boolean {
  return to.kind === "service";
}

function printHistory({ history: head, changes }: HistoryAnswer): string {
  const none = changes.length === 0 && head.beginsAt !== null ? "no changes\n" : "";
  return `${printHead(head, printMoment)}${none}${changes.map((each) => printEntry(each, printMoment)).join("")}`;
}

/** One JSON value per line, since there is no end. */
async function followFrom(
  first: HistoryAnswer,
  socket: string,
  query: Readonly<Record<string, string>>,
  output: "text" | "json",
  world: CommandWorld,
  signal: AbortSignal,
): Promise<number> {
  const print = (entry: HistoryEntry) =>
    world.stdout(output === "json" ? `${JSON.stringify(entry)}\n` : printEntry(entry, printMoment));
  let isReported = false;
  /** A daemon that restarts does not respond for a while. */
  const report = (error: unknown) => {
    if (!(error instanceof UsageError)) throw error;
    if (!isReported) world.stderr(`! ${error.message.replace(/; retry$/, "; retrying")}\n`);
    isReported = true;
    return null;
  };
  if (output === "text") world.stdout(printHead(first.history, printMoment));
  for (const entry of first.changes) print(entry);
  for (let after = first.history.lastSeq; !signal.aborted; ) {
    await sleep(world.clock, pollMs, signal).catch(() => {});
    if (signal.aborted) break;
    const more = await readHistory(socket, { ...query, after: String(after) }).catch(report);
    if (more === null) continue;
    isReported = false;
    for (const entry of more.changes) print(entry);
    // A daemon that started again without a directory counts from the beginning.
    const { lastSeq } = more.history;
    after = lastSeq < after ? 0 : lastSeq;
  }
  return 0;
}
