// The tour that runs without a terminal: commands, and what they show.
import { runLine } from "./commands.ts";
import type { Playground } from "./playground.ts";

type Step = { readonly title: string; readonly commands: readonly string[] };

const steps: readonly Step[] = [
  {
    title:
      "A pod calls the Service web. Each request may go to another pod, and the pods see the client's address.",
    commands: ["send stock-1 svc/shop/web:80 3"],
  },
  {
    title:
      "An outside client calls port 30080 of node-a. Any pod may answer, and it sees the node's address.",
    commands: ["send outside nodeport:30080 2"],
  },
  {
    title: "cart keeps the client's address (externalTrafficPolicy: Local) and uses session affinity.",
    commands: ["send outside nodeport:30081 2"],
  },
  {
    title: "The load balancer of web accepts one source range and drops other clients.",
    commands: ["send outside:203.0.113.9 198.51.100.10:80", "send outside:203.0.113.200 198.51.100.10:80"],
  },
  {
    title: "broken selects no pod: clients are rejected immediately.",
    commands: ["send web-1 svc/shop/broken:80"],
  },
  { title: "A UDP Service: DNS.", commands: ["send web-1 svc/shop/dns:53"] },
  {
    title: "Why does the stock pod of the other zone never answer?",
    commands: ["explain web-1 svc/shop/stock:9090"],
  },
  {
    title: "web is scaled to 5 pods: the proxies apply only the difference.",
    commands: ["scale web 5", "send stock-1 svc/shop/web:80 3"],
  },
  {
    title: "Another program flushes all rules of node-a: the proxy restores them before the next request.",
    commands: ["flush node-a", "send outside nodeport:30080"],
  },
];

/** Calls `print` with each line. */
export async function runTour(
  playground: Playground,
  print: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  for (const { title, commands } of steps) {
    if (signal.aborted) return;
    print("");
    print(`# ${title}`);
    for (const command of commands) {
      print(`> ${command}`);
      for (const line of await runLine(playground, command)) print(`  ${line}`);
    }
  }
}
