// `turnout diff`: what another cluster state would change, or how the kernel differs from the expected rules.

import { compareRoutes, printComparison } from "../../explain/compare.ts";
import { differences } from "../../inspect/differences.ts";
import { targetAt } from "../../inspect/history.ts";
import {
  fileProblems,
  loadBoth,
  loadNode,
  type NodeView,
  noServices,
  unknownNode,
  unreadable,
} from "../../inspect/node-view.ts";
import { placeOf, relaysOf, resolveTarget, type Target } from "../../inspect/target.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import type { Family } from "../../model/address.ts";
import { modes } from "../../modes/index.ts";
import { command } from "../command.ts";
import type { CommandLine, CommandSpec } from "../flags.ts";
import { momentExamples, parseMoment } from "../moment.ts";
import { atFlag, outputFlag, sources, targetFlags } from "../target-flags.ts";
import type { CommandWorld } from "./kube-proxy.ts";

export const diffSpec = {
  name: "diff",
  summary: "compare two cluster states, or the kernel of a node with the expected rules",
  usage: [
    "--source=BEFORE --against=AFTER --node=NAME [flags]",
    "--at=TIME [--at=TIME] [flags]",
    "--live [--source=SOURCE] [flags]",
  ],
  flags: [
    ...targetFlags,
    {
      name: "against",
      value: "SOURCE",
      suggestions: sources,
      example: "files:new.yaml",
      description: "compare with this cluster state; lists the packets that would be handled differently",
    },
    {
      ...atFlag,
      repeats: true,
      description: `compare the cluster as it was then with a second --at, or with now, from the history of the daemon: ${momentExamples}; times without a zone are local`,
    },
    {
      name: "live",
      description:
        "compare with the kernel, in the network namespace of the daemon or of the playground's node; in userspace mode also with the relays of the daemon",
    },
    outputFlag,
  ],
  exitCodes: { 0: "no differences", 1: "the comparison failed", 3: "differences were found" },
  examples: [
    "turnout diff --source=files:examples/shop --against=files:new.yaml --node=node-a",
    "turnout diff --live --source=playground --node=node-b",
    "turnout diff --at=10:41 --at=10:45",
  ],
} as const satisfies CommandSpec;

type Output = "text" | "json";

export const diff = command(diffSpec, async ({ flags }, world, signal) => {
  const { live = false, against, at = [], output = "text" } = flags;
  if (at.length > 0) return diffPast(flags, at, world, signal);
  if (live && against !== undefined) throw new UsageError("--against and --live cannot be combined");
  if (!live && against === undefined)
    throw new UsageError("--against, --at or --live is required, for example --against=files:new.yaml");
  const target = await resolveTarget(flags, world);
  if (live) return diffKernel(target, output, world, signal);
  const other = await resolveTarget({ ...flags, source: against, node: target.node }, world);
  const [before, after] = await loadBoth(target, other, signal);
  const [broken] = [...unreadable(before), ...unreadable(after)];
  if (broken !== undefined) throw new UsageError(`cannot compare: ${broken}`);
  world.stderr(`${noServices(before)}${noServices(after)}${fileProblems(before)}${fileProblems(after)}`);
  world.stderr(await unknownNode(before));
  world.stderr(await unknownNode(after, ` in ${against}`));
  return printChanges(before, after, output, world);
});

/** Two moments of the past, or one and now. */
async function diffPast(
  flags: CommandLine<typeof diffSpec.flags>["flags"],
  at: readonly string[],
  world: CommandWorld,
  signal: AbortSignal,
): Promise<number> {
  if (flags.live || flags.against !== undefined)
    throw new UsageError("--at cannot be combined with --live or --against");
  if (at.length > 2) throw new UsageError("--at can be passed twice at most: before and after");
  const now = world.clock.wall();
  const target = await resolveTarget(flags, world);
  const [first, second] = at
    .map((text) => parseMoment(text, now, "--at"))
    .sort((a, b) => a - b)
    .map((moment) => targetAt(target, flags.source, moment));
  const before = await loadNode(first!, signal);
  const after = await loadNode(second ?? target, signal);
  return printChanges(before, after, flags.output ?? "text", world);
}

function printChanges(before: NodeView, after: NodeView, output: Output, world: CommandWorld): number {
  const changes = compareRoutes(before.routes, after.routes);
  world.stdout(output === "json" ? `${JSON.stringify(changes, null, 2)}\n` : printComparison(changes));
  return changes.length === 0 ? 0 : 3;
}

async function diffKernel(
  target: Target,
  output: Output,
  world: CommandWorld,
  signal: AbortSignal,
): Promise<number> {
  const { node, config, families } = target;
  let loading: Promise<NodeView> | undefined;
  const load = () => (loading ??= loadNode(target, signal, true));
  const routes = async (family: Family) => (await load()).routes[family];
  const query = { at: placeOf(target), routes, config, relays: () => relaysOf(target), signal };
  const lines = await differences(modes[config.mode], query, families);
  world.stderr(await unknownNode(await load()));
  if (output === "json")
    world.stdout(`${JSON.stringify({ node, mode: config.mode, differences: lines }, null, 2)}\n`);
  else world.stdout(lines.length === 0 ? "The kernel holds what it should.\n" : `${lines.join("\n")}\n`);
  return lines.length === 0 ? 0 : 3;
}
