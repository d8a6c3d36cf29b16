// `turnout whatif`: what would happen to traffic without a node, a zone or a pod, or with other objects.
import { printWhatIf } from "../../explain/what-if-print.ts";
import { fileProblems, loadNode, noServices, unknownNode } from "../../inspect/node-view.ts";
import { resolveTarget } from "../../inspect/target.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { answerWhatIf } from "../../inspect/what-if.ts";
import { command } from "../command.ts";
import type { CommandSpec } from "../flags.ts";
import { outputFlag, targetFlags } from "../target-flags.ts";

export const whatifSpec = {
  name: "whatif",
  summary: "compute which Services would lose endpoints without a node, zone or pod, or with other objects",
  usage: ["--without=node/NAME [--without=…] [--with=FILE] [flags]"],
  flags: [
    {
      name: "without",
      value: "OBJECT",
      repeats: true,
      suggestions: ["node/", "zone/", "pod/"],
      example: "node/node-b",
      description:
        "node/NAME, zone/NAME, pod/NAME, pod/NAMESPACE/NAME or pod/ADDRESS; may be passed several times",
    },
    {
      name: "with",
      value: "FILE",
      example: "new.yaml",
      description:
        "manifests to add: a Service replaces the one of its name, EndpointSlices replace all endpoints of their Service",
    },
    ...targetFlags,
    outputFlag,
  ],
  notes: [
    "Nothing is changed. The answer is for the moment after the change, before controllers replace pods or write new topology hints.",
  ],
  exitCodes: {
    0: "every Service keeps an endpoint",
    1: "the question cannot be answered",
    3: "a Service would have no endpoint",
  },
  examples: [
    "turnout whatif --without=node/node-b --source=files:examples/shop --node=node-a",
    "turnout whatif --without=zone/b --without=pod/10.0.1.3 --source=playground",
  ],
} as const satisfies CommandSpec;

export const whatif = command(whatifSpec, async ({ flags }, world, signal) => {
  const { without = [], output = "text" } = flags;
  if (without.length === 0 && flags.with === undefined)
    throw new UsageError("--without or --with is required, for example --without=node/node-b");
  const target = await resolveTarget(flags, world);
  const view = await loadNode(target, signal);
  world.stderr(`${noServices(view)}${fileProblems(view)}${await unknownNode(view)}`);
  const answer = await answerWhatIf(target, view.snapshot, { without, with: flags.with }, signal);
  world.stdout(output === "json" ? `${JSON.stringify(answer, null, 2)}\n` : printWhatIf(answer));
  return answer.withoutEndpoint.length === 0 ? 0 : 3;
});
