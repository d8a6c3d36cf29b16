// `turnout page`: its flag table. What serves the page is loaded only by this command: the daemon has no use for it.
import { command } from "../command.ts";
import type { CommandSpec } from "../flags.ts";
import { nodeFlag, sourceFlag, targetFlags } from "../target-flags.ts";

export const pageSpec = {
  name: "page",
  summary: "serve a page that shows the Services of a node, live, in a browser",
  usage: ["[flags]"],
  flags: [
    sourceFlag,
    nodeFlag,
    ...targetFlags.filter(({ name }) => name === "config" || name === "mode" || name === "cluster-cidr"),
    {
      name: "address",
      value: "ADDRESS",
      example: "127.0.0.1:8270",
      fallback: "127.0.0.1:0",
      description: "loopback address and port of the page; port 0: any free port",
    },
    {
      name: "until-stdin-ends",
      description: "stop when standard input ends: for kubectl exec, which passes no signals on",
    },
  ],
  notes: [
    "Prints the URL with a token that is valid as long as the page is served; open it in a browser on this machine. Everything is read-only. With --source=daemon and --source=playground, which require root, the daemon answers through its status socket; a daemon that runs with --page-address serves the page itself, and its URL is printed.",
  ],
  examples: [
    "turnout page",
    "turnout page --source=files:examples/shop --node=node-a --address=127.0.0.1:8270",
  ],
} as const satisfies CommandSpec;

export const page = command(pageSpec, async ({ flags }, world, signal) => {
  const { servePage } = await import("../page/serve-page.ts");
  return servePage(flags, world, signal);
});
