// `turnout render`: prints what a Mode would write to a node, or the Routes it is compiled from.

import type { ModeName } from "../../config/modes.ts";
import { trafficSettings } from "../../config/resolve/settings.ts";
import { loadNode, type NodeView, noServices, unknownNode, unreadable } from "../../inspect/node-view.ts";
import { resolveTarget } from "../../inspect/target.ts";
import { modeNames } from "../../inspect/target-config.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { type Family, families } from "../../model/address.ts";
import { printProblem } from "../../model/problem.ts";
import { modes } from "../../modes/index.ts";
import { printRoutes } from "../../routing/print.ts";
import type { Routes } from "../../routing/routes.ts";
import { command } from "../command.ts";
import type { CommandSpec } from "../flags.ts";
import { targetFlags } from "../target-flags.ts";

export const renderSpec = {
  name: "render",
  summary: "print the rules of a node without changing anything",
  usage: ["--source=SOURCE --node=NAME [flags]"],
  flags: [
    ...targetFlags,
    {
      name: "traffic",
      value: "WHAT",
      choices: trafficSettings,
      fallback: "that of the daemon, else off",
      description: "nftables: with the counters that --traffic of turnout run adds",
    },
    {
      name: "output",
      short: "o",
      value: "FORMAT",
      choices: ["routes", "json", ...modeNames],
      example: "json",
      fallback: "routes, or the mode of --mode",
      description:
        "routes: which endpoints each Service is forwarded to; json: the same as data, or the Plan of --mode; nftables: the table as nft -f loads it; iptables: the tables as iptables-save and ip6tables-save print them; ipvs: the output of ipvsadm, ip, ipset and iptables-save; userspace: as iptables, with placeholders for the relay ports, which only a daemon knows",
    },
  ],
  examples: ["turnout render --source=files:examples/shop --node=node-a -o nftables"],
} as const satisfies CommandSpec;

type Output = "routes" | "json" | ModeName;

export const render = command(renderSpec, async ({ flags }, world, signal) => {
  const output = flags.output ?? flags.mode ?? "routes";
  const mode = modeNames.find((name) => name === output) ?? flags.mode;
  const target = await resolveTarget({ ...flags, mode }, world);
  const view = await loadNode(target, signal);
  const [broken] = unreadable(view);
  if (broken !== undefined) throw new UsageError(`cannot render: ${broken}`);
  world.stderr(`${noServices(view)}${await unknownNode(view)}`);
  world.stdout(printAs(output, view, flags.mode !== undefined));
  for (const problem of view.snapshot.problems) world.stderr(`! ${printProblem(problem)}\n`);
  return 0;
});

function printAs(output: Output, { routes, target: { config } }: NodeView, isModeGiven: boolean): string {
  if (output === "routes") {
    const printed = new Set<string>();
    return families.map((family) => `# ${family}\n${printRoutes(routes[family], printed)}`).join("\n");
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
