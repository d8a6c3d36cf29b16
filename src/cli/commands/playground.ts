// `turnout playground`: its help and flags. It is a program of its own, which images do not contain.
import { UsageError } from "../../inspect/usage-error.ts";
import { readArguments } from "../arguments.ts";
import { withUsageErrors } from "../usage-error.ts";
import type { CommandWorld } from "./kube-proxy.ts";

export const playgroundHelp = `turnout playground: a cluster on this machine, in network namespaces of its own, to try things on

Usage: turnout playground [--mode=nftables] [--once] [--script=FILE] [--manifests=FILE] [--port=7443] [-o json]

  --mode       how the proxies work: nftables (default), iptables, ipvs (where the kernel has it) or userspace
  --once       makes the tour without a terminal, and ends
  --script     runs the commands in a file, one a line, and ends; # begins a comment; ends with 1 when one is
               mistaken
  --manifests  YAML of the cluster to start with, instead of the shop that is built in
  -o           text (default) or json: a JSON object for each line, without a terminal
  --port       of the Kubernetes API on 127.0.0.1; another free one when it is taken

On a terminal it shows Services, nodes and packets live, and has a prompt: help lists its commands. Without one it makes a
tour by itself and then serves until it is stopped. Needs root. Nothing is left behind at the end.

While it runs, in another terminal:
  turnout explain web-1 svc/shop/stock --source=playground
  turnout status --source=playground --node=node-a
  kubectl --kubeconfig=$(ls /run/turnout-playground/*/kubeconfig) get services
`;

export const playgroundArguments = {
  flags: ["mode", "script", "manifests", "port", "o", "output"],
  switches: ["once"],
} as const;

/** bin/turnout starts the playground itself; without its bundle there is only help. */
export function playground(argv: readonly string[], world: CommandWorld): Promise<number> {
  return withUsageErrors("playground", world, async () => {
    if (!readArguments(argv, playgroundArguments).help)
      throw new UsageError(
        "the playground is not part of this image; run npm start in a clone of the repository",
      );
    world.stdout(playgroundHelp);
    return 0;
  });
}
