// The tour the playground makes by itself when nobody sits at a terminal: commands, and what they show.
import { runLine } from "./commands.ts";
import type { Playground } from "./playground.ts";

type Step = { readonly title: string; readonly commands: readonly string[] };

const steps: readonly Step[] = [
  {
    title:
      "A pod calls the Service web: each request may go to another pod, and pods see the caller's own address.",
    commands: ["send stock-1 svc/shop/web:80 3"],
  },
  {
    title:
      "Somebody outside calls port 30080 of node-a: any pod may answer, and it sees the node it came through.",
    commands: ["send outside nodeport:30080 2"],
  },
  {
    title:
      "cart keeps the caller's address (externalTrafficPolicy Local), and stays with one pod for each client.",
    commands: ["send outside nodeport:30081 2"],
  },
  {
    title: "The load balancer of web lets one network in, and nobody else.",
    commands: ["send outside:203.0.113.9 198.51.100.10:80", "send outside:203.0.113.200 198.51.100.10:80"],
  },
  {
    title: "broken selects no pod: clients are rejected immediately instead of waiting.",
    commands: ["send web-1 svc/shop/broken:80"],
  },
  { title: "DNS, over UDP.", commands: ["send web-1 svc/shop/dns:53"] },
  {
    title: "Why does the stock of the other zone never answer?",
    commands: ["explain web-1 svc/shop/stock:9090"],
  },
  {
    title: "web grows to 5 pods: the proxies change what differs, and no more.",
    commands: ["scale web 5", "send stock-1 svc/shop/web:80 3"],
  },
  {
    title: "Somebody flushes all rules of node-a: they are back before the next request.",
    commands: ["flush node-a", "send outside nodeport:30080"],
  },
];

/** Calls `print` with each line as it comes. */
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
