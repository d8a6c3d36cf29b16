// `turnout diff`: what another cluster state would change, or how the kernel differs from what it should hold.

import { compareRoutes, printComparison } from "../../explain/compare.ts";
import { differences } from "../../inspect/differences.ts";
import {
  askRelays,
  fileProblems,
  loadBoth,
  loadNode,
  type NodeView,
  noServices,
  placeOf,
  resolveTarget,
  targetFlags,
  targetHelp,
  targetSwitches,
  unknownNode,
  unreadable,
} from "../../inspect/target.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import type { Family } from "../../model/address.ts";
import { modes } from "../../modes/index.ts";
import { readArguments } from "../arguments.ts";
import { outputOf } from "../output.ts";
import { withUsageErrors } from "../usage-error.ts";
import type { CommandWorld } from "./kube-proxy.ts";

export const diffHelp = `turnout diff: which packets would meet another fate, or how the kernel differs from what it should hold

Usage: turnout diff --source=A --against=B --node=NAME [-o json]     A now, B then
       turnout diff --live [--source=…] [-o json]                    what is wanted, and what the kernel holds

${targetHelp}  --against   another source, to compare with
  --live      compares with the kernel, in the network namespace of the daemon or of the playground's node; in
              userspace mode also with the relays of the daemon there
  -o          text (default) or json

Ends with 0 when nothing differs, with 3 when something does.

Examples:
  turnout diff --source=files:examples/shop --against=files:new.yaml --node=node-a
  turnout diff --live --source=playground --node=node-b
`;

export function diff(argv: readonly string[], world: CommandWorld, signal: AbortSignal): Promise<number> {
  return withUsageErrors("diff", world, async () => {
    const { given, on, help } = readArguments(argv, {
      flags: [...targetFlags, "against"],
      switches: ["live", ...targetSwitches],
      words: {
        most: 0,
        instead:
          "say for example: turnout diff --source=files:examples/shop --against=files:new.yaml --node=node-a",
      },
    });
    if (help) {
      world.stdout(diffHelp);
      return 0;
    }
    const live = on.has("live");
    if (live === (given.against !== undefined))
      throw new UsageError(
        live
          ? "say only one of --against and --live: another source, or the kernel"
          : "say with what to compare: --against=files:new.yaml, or --live for the kernel",
      );
    const output = outputOf(given);
    const look = await resolveTarget({ given, on }, world);
    if (live) {
      let seen: Promise<NodeView> | undefined;
      const see = () => (seen ??= loadNode(look, signal, live));
      const routes = async (family: Family) => (await see()).routes[family];
      const { config } = look;
      const query = { at: placeOf(look), routes, config, relays: () => askRelays(look), signal };
      const lines = await differences(modes[config.mode], query, look.families);
      world.stderr(await unknownNode(await see()));
      if (output === "json")
        world.stdout(
          `${JSON.stringify({ node: look.node, mode: look.config.mode, differences: lines }, null, 2)}\n`,
        );
      else world.stdout(lines.length === 0 ? "The kernel holds what it should.\n" : `${lines.join("\n")}\n`);
      return lines.length === 0 ? 0 : 3;
    }
    const other = await resolveTarget(
      { given: { ...given, source: given.against, node: look.node }, on },
      world,
    );
    const [seen, then] = await loadBoth(look, other, signal);
    const [broken] = [...unreadable(seen), ...unreadable(then)];
    if (broken !== undefined) throw new UsageError(`cannot compare: ${broken}`);
    world.stderr(`${noServices(seen)}${noServices(then)}${fileProblems(seen)}${fileProblems(then)}`);
    world.stderr(await unknownNode(seen));
    world.stderr(await unknownNode(then, ` in ${given.against}`));
    const changes = compareRoutes(seen.routes, then.routes);
    world.stdout(output === "json" ? `${JSON.stringify(changes, null, 2)}\n` : printComparison(changes));
    return changes.length === 0 ? 0 : 3;
  });
}
