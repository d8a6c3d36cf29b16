// `turnout flows`: lists, sums and follows the connections that the kernel of a node tracks.

import { parseSelector, resolveSelector, selectorExamples } from "../../inspect/flow-selector.ts";
import { fileProblems, loadNode, type NodeView, unknownNode } from "../../inspect/node-view.ts";
import { resolveTarget } from "../../inspect/target.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { matcherOf } from "../../traffic/selector.ts";
import { command } from "../command.ts";
import type { CommandSpec } from "../flags.ts";
import { followFlows } from "../flows/follow.ts";
import { listFlows, sumFlows } from "../flows/list.ts";
import { namespaceFlag, targetFlags } from "../target-flags.ts";

const mostRows = 100_000;
const defaultRows = 100;

export const flowsSpec = {
  name: "flows",
  summary: "list, sum or follow tracked connections by Service, pod, endpoint or node port",
  usage: ["[SELECTOR] [flags]"],
  args: [{ name: "SELECTOR", description: `${selectorExamples}; without it, flows of all Services` }],
  flags: [
    {
      name: "by",
      value: "UNIT",
      choices: ["service", "endpoint"],
      example: "service",
      description: "print the number of active connections per Service or per endpoint instead",
    },
    {
      name: "follow",
      short: "f",
      description: "print flows as they start, change state and end, until interrupted",
    },
    {
      name: "all",
      short: "A",
      description: "also print flows that do not belong to a Service",
    },
    {
      name: "limit",
      value: "N",
      example: "1000",
      fallback: String(defaultRows),
      description: `most flows to print, at most ${mostRows}; all of them are read and counted`,
    },
    namespaceFlag,
    ...targetFlags,
    {
      name: "output",
      short: "o",
      value: "FORMAT",
      choices: ["text", "wide", "json"],
      example: "wide",
      fallback: "text",
      description: "output format; wide: also frontend, pod, node, packets, mark, zone and reasons",
    },
  ],
  notes: [
    "TODAY: whether a new connection of this client could reach the same endpoint now. AGE requires nf_conntrack_timestamp=1, BYTES nf_conntrack_acct=1; the kernel records them for flows that start afterwards. A connection is translated on the node that it enters first: use the node of the client.",
    "Requires root. It changes nothing.",
  ],
  exitCodes: { 0: "printed", 1: "the flows cannot be read" },
  examples: [
    "turnout flows svc/shop/web -o wide",
    "turnout flows --by=endpoint",
    "turnout flows :30080 --follow",
    "turnout flows pod/shop/web-1 --source=playground",
  ],
} as const satisfies CommandSpec;

export const flows = command(flowsSpec, async ({ flags, args: [text] }, world, signal) => {
  if (flags.follow && flags.by !== undefined) throw new UsageError("--follow and --by cannot be combined");
  const limit = limitOf(flags.limit);
  const wanted = text === undefined ? null : parseSelector(text, flags.namespace ?? null);
  const missing = world.missingRights();
  if (missing !== null) throw new UsageError(`cannot read conntrack: ${missing}`);
  const target = await resolveTarget({ ...flags, live: true }, world);
  const load = () => loadNode(target, signal, true);
  const view = await load();
  await warn(view, world.stderr);
  const { all = false, output = "text" } = flags;
  const selector =
    wanted === null
      ? ({ kind: "all", others: all } as const)
      : await resolveSelector(wanted, view.routes, target, signal);
  const matches = matcherOf(selector);
  const reading = { view, matches, output, world, signal };
  if (flags.follow) return followFlows({ ...reading, load });
  if (flags.by !== undefined) return sumFlows({ ...reading, by: flags.by });
  return listFlows({ ...reading, limit });
});

async function warn(view: NodeView, stderr: (text: string) => void): Promise<void> {
  stderr(await unknownNode(view));
  stderr(fileProblems(view));
}

function limitOf(text = String(defaultRows)): number {
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > mostRows)
    throw new UsageError(`--limit must be a number between 1 and ${mostRows}, for example --limit=1000`);
  return limit;
}
