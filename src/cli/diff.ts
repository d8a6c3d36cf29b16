// `turnout diff`: what another cluster state would change, or how the kernel differs from what it should hold.
import { compareRoutes, printComparison } from "../explain/compare.ts";
import { starter } from "../host/iptables/command.ts";
import { openIptablesHost } from "../host/iptables/host.ts";
import { NftablesHost } from "../host/nftables/host.ts";
import { families } from "../model/address.ts";
import { compile as compileIptables } from "../modes/iptables/compile.ts";
import { compile as compileNftables } from "../modes/nftables/compile.ts";
import { adopt } from "../plan/iptables/adopt.ts";
import { printPatch } from "../plan/iptables/print.ts";
import { diff as diffTables, type Operation } from "../plan/nftables/diff.ts";
import { unfold } from "../plan/nftables/plan.ts";
import { existingCounters } from "../sync/iptables-support.ts";
import type { CommandWorld } from "./command.ts";
import { lookAt, lookFlags, lookFrom, lookHelp, Mistake, type Seen, withMistakes } from "./look.ts";
import { splitOwnFlags } from "./own-flags.ts";

export const diffHelp = `turnout diff: which packets would meet another fate, or how the kernel differs from what it should hold

Usage: turnout diff --source=A --against=B --node=NAME [-o json]     A now, B then
       turnout diff --live [--source=…] [-o json]                    what is wanted, and what the kernel holds

${lookHelp}  --against   another source, to compare with
  --live      compares with the kernel of this machine, or of the playground's node
  -o          text (default) or json

Ends with 0 when nothing differs, with 3 when something does.

Examples:
  turnout diff --source=files:examples/shop --against=files:new.yaml --node=node-a
  turnout diff --live --source=playground --node=node-b
`;

export function diff(argv: readonly string[], world: CommandWorld, signal: AbortSignal): Promise<number> {
  return withMistakes("diff", world, async () => {
    const live = argv.includes("--live");
    const { given, rest } = splitOwnFlags(
      argv.filter((argument) => argument !== "--live"),
      [...lookFlags, "against"],
    );
    if (rest.includes("--help") || rest.includes("-h")) {
      world.stdout(diffHelp);
      return 0;
    }
    if (rest.length > 0)
      throw new Mistake(`cannot use ${JSON.stringify(rest[0])}; --help shows what can be said`);
    if (live === (given.against !== undefined))
      throw new Mistake("say with what to compare: --against=files:new.yaml, or --live for the kernel");
    const output = given.o ?? given.output ?? "text";
    const look = await lookFrom(given, world.version);
    const seen = await lookAt(look, signal, live);
    if (live) {
      const lines = await differences(seen, signal);
      if (output === "json")
        world.stdout(
          `${JSON.stringify({ node: look.node, mode: look.mode, differences: lines }, null, 2)}\n`,
        );
      else world.stdout(lines.length === 0 ? "The kernel holds what it should.\n" : `${lines.join("\n")}\n`);
      return lines.length === 0 ? 0 : 3;
    }
    const other = await lookFrom({ ...given, source: given.against, node: look.node }, world.version);
    const changes = compareRoutes(seen.routes, (await lookAt(other, signal)).routes);
    world.stdout(output === "json" ? `${JSON.stringify(changes, null, 2)}\n` : printComparison(changes));
    return changes.length === 0 ? 0 : 3;
  });
}

/** What would have to be done to the kernel, a line each. */
async function differences({ look, routes }: Seen, signal: AbortSignal): Promise<string[]> {
  const place = look.netns === undefined ? {} : { netns: look.netns };
  const lines: string[] = [];
  for (const family of families) {
    if (look.mode === "iptables") {
      const plan = compileIptables(null, routes[family], await existingCounters(place));
      const host = await openIptablesHost(family, starter(place), signal);
      const text = printPatch(adopt(await host.read(signal), plan));
      lines.push(
        ...text
          .split("\n")
          .filter((line) => /^[-:]/.test(line))
          .map((line) => `${family}: ${line}`),
      );
    } else {
      const want = unfold(compileNftables(null, routes[family]));
      const host = await NftablesHost.open({ family: want.family, ...place });
      try {
        const patch = diffTables(await host.read(want, signal), want);
        lines.push(...patch.flatMap(operationLines).map((line) => `${family}: ${line}`));
      } finally {
        await host.close();
      }
    }
  }
  return lines;
}

function operationLines(operation: Operation): string[] {
  switch (operation.kind) {
    case "add table":
      return ["the whole table is missing"];
    case "delete table":
      return ["the table must be made anew"];
    case "add set":
      return [`missing set ${operation.set.name}`];
    case "delete set":
      return [`foreign set ${operation.name}`];
    case "add counter":
      return [`missing counter ${operation.name}`];
    case "delete counter":
      return [`foreign counter ${operation.name}`];
    case "add chain":
      return [`missing chain ${operation.chain.name}`];
    case "add rules":
      return [`missing rules in chain ${operation.chain.name}`];
    case "flush chain":
      return [`wrong rules in chain ${operation.name}`];
    case "delete chain":
      return [`foreign chain ${operation.name}`];
    case "add elements":
      return operation.items.map(({ key }) => `missing element ${key} in ${operation.set.name}`);
    case "delete elements":
      return operation.items.map(({ key }) => `foreign element ${key} in ${operation.set.name}`);
    case "remember clients":
      return [];
  }
}
