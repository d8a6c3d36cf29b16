// `turnout render`: what a Mode would put on a node, or the Routes behind it, without touching anything.

import { closest } from "../../config/closest.ts";
import {
  loadNode,
  type NodeView,
  noServices,
  resolveTarget,
  targetFlags,
  targetHelp,
  targetSwitches,
  unknownNode,
  unreadable,
} from "../../inspect/target.ts";
import { modeNames } from "../../inspect/target-config.ts";
import { alternatives, UsageError } from "../../inspect/usage-error.ts";
import { type Family, families } from "../../model/address.ts";
import { printProblem } from "../../model/problem.ts";
import { modes } from "../../modes/index.ts";
import { printRoutes } from "../../routing/print.ts";
import type { Routes } from "../../routing/routes.ts";
import { readArguments } from "../arguments.ts";
import { withUsageErrors } from "../usage-error.ts";
import type { CommandWorld } from "./kube-proxy.ts";

export const renderHelp = `turnout render: what would be on a node, without touching anything

Usage: turnout render --source=files:DIR --node=NAME [-o routes|json|nftables|iptables|ipvs|userspace] [--mode=MODE]

${targetHelp}  -o          routes (default): who is sent where; json: the same as data;
              nftables: the table in nft's own syntax, which nft -f would load;
              iptables: the tables as iptables-save and ip6tables-save would list them;
              ipvs: what ipvsadm, ip, ipset and iptables-save would list;
              userspace: as iptables; the ports of relays, which only a daemon knows, are stand-ins
              with --mode, -o json prints the Plan of that mode

Example:
  turnout render --source=files:examples/shop --node=node-a -o nftables
`;

export function render(argv: readonly string[], world: CommandWorld, signal: AbortSignal): Promise<number> {
  return withUsageErrors("render", world, async () => {
    const { given, on, words, help } = readArguments(argv, {
      flags: targetFlags,
      switches: targetSwitches,
      words: { most: 1, instead: example },
    });
    if (help) {
      world.stdout(renderHelp);
      return 0;
    }
    if (words[0] !== undefined) throw new UsageError(cannotUse(words[0]));
    const wanted = given.o ?? given.output ?? given.mode ?? "routes";
    checkOutput(wanted);
    const mode = (modeNames as readonly string[]).includes(wanted) ? wanted : given.mode;
    const look = await resolveTarget({ given: mode === undefined ? given : { ...given, mode }, on }, world);
    const seen = await loadNode(look, signal);
    const [broken] = unreadable(seen);
    if (broken !== undefined) throw new UsageError(`cannot render: ${broken}`);
    world.stderr(`${noServices(seen)}${await unknownNode(seen)}`);
    world.stdout(printAs(wanted, seen, given.mode !== undefined));
    for (const problem of seen.snapshot.problems) world.stderr(`! ${printProblem(problem)}\n`);
    return 0;
  });
}

const example = "say for example: turnout render --source=files:examples/shop --node=node-a -o nftables";

/** What to print is said with -o. */
function cannotUse(word: string): string {
  const near = closest(word, outputs());
  return `cannot use ${JSON.stringify(word)}; ${near === null ? example : `did you mean -o ${near}?`}`;
}

function outputs(): string[] {
  return ["routes", "json", ...modeNames];
}

function checkOutput(output: string): void {
  if (!outputs().includes(output))
    throw new UsageError(`-o must be ${alternatives(outputs())}, not ${JSON.stringify(output)}`);
}

function printAs(output: string, { routes, look: { config } }: NodeView, isModeGiven: boolean): string {
  if (output === "routes") {
    const told = new Set<string>();
    return families.map((family) => `# ${family}\n${printRoutes(routes[family], told)}`).join("\n");
  }
  const preview = (family: Family) => modes[config.mode].preview(routes[family], config);
  if (output !== "json") return families.map((family) => preview(family).text()).join("\n");
  const data = families.map((family) => [
    family,
    isModeGiven ? preview(family).json() : jsonRoutes(routes[family]),
  ]);
  return `${JSON.stringify(Object.fromEntries(data), null, 2)}\n`;
}

function jsonRoutes(routes: Routes): unknown {
  return Object.fromEntries(
    [...routes.ports.entries()]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, { port, routes: each, lost }]) => [
        key,
        { service: port.service, portName: port.portName, routes: each, lost },
      ]),
  );
}
