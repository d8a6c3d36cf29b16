// `turnout playground`: its flag table. The playground is a separate program, which images do not contain.
import { modeNames } from "../../inspect/target-config.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { command } from "../command.ts";
import type { CommandSpec } from "../flags.ts";
import { outputFlag } from "../target-flags.ts";

export const playgroundSpec = {
  name: "playground",
  summary: "run a test cluster in network namespaces on this machine",
  usage: ["[flags]"],
  flags: [
    {
      name: "mode",
      value: "MODE",
      choices: modeNames,
      example: "nftables",
      fallback: "nftables",
      description: "proxy mode of the nodes; ipvs requires kernel support",
    },
    { name: "once", description: "run the tour without a terminal, then exit" },
    {
      name: "script",
      value: "FILE",
      example: "commands.txt",
      description:
        "run the commands in this file, one per line, then exit; # starts a comment; the exit code is 1 if a command fails",
    },
    {
      name: "manifests",
      value: "FILE",
      example: "shop.yaml",
      description: "YAML of the initial cluster, instead of the built-in shop",
    },
    {
      name: "port",
      value: "PORT",
      example: "7443",
      fallback: "7443",
      description: "port of the Kubernetes API on 127.0.0.1; if it is in use, another free port is used",
    },
    {
      name: "page-port",
      value: "PORT",
      example: "7444",
      fallback: "7444",
      description: "port of the page on 127.0.0.1; if it is in use, another free port is used",
    },
    { ...outputFlag, description: "output format; json prints a JSON object per line, without a terminal" },
  ],
  notes: [
    "On a terminal it shows Services, nodes and packets live, and has a prompt; help lists its commands. Without a terminal it runs a tour and then serves until it is stopped. Requires root. Everything is removed on exit.",
    `While it runs, in another terminal:
  turnout explain web-1 svc/shop/stock --source=playground
  turnout status --source=playground --node=node-a
  kubectl --kubeconfig=$(ls /run/turnout-playground/*/kubeconfig) get services`,
  ],
  examples: ["turnout playground --mode=iptables", "turnout playground --script=commands.txt"],
} as const satisfies CommandSpec;

/** bin/turnout starts the playground itself; without its bundle there is only help. */
export const playground = command(playgroundSpec, async () => {
  throw new UsageError(
    "the playground is not part of this image; run npm start in a clone of the repository",
  );
});
