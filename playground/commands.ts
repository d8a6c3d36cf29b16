// The commands of the playground prompt and of scripts. Each prints lines of text.
import { setTimeout as sleep } from "node:timers/promises";
import { closest } from "../src/config/closest.ts";
import { flowLines } from "./flows.ts";
import type { SendResult } from "./net/send.ts";
import { CommandError, type Playground, type Sent } from "./playground.ts";

type Print = (line: string) => void;

/** The syntax of FROM and TO in `send` and `explain`. */
const packets = [
  "FROM: web-1 (a pod), pod/web-1, node-a, outside, outside:203.0.113.200",
  "TO:   web:80 (a Service), svc/shop/dns:dns, nodeport:30080, nodeport:30053/udp, 172.30.0.10:80",
];

type Command = {
  readonly usage: string;
  readonly summary: string;
  /** Largest number of arguments; 1 when absent. */
  readonly maxArgs?: number;
  /** Further lines of `help COMMAND`. */
  readonly details?: readonly string[];
  /** Returns the output; `print` prints a line before the command has finished. */
  readonly run: (playground: Playground, args: readonly string[], print: Print) => Promise<readonly string[]>;
};

export const commands: Readonly<Record<string, Command>> = {
  send: {
    usage: "send FROM TO [TIMES]",
    summary: "send requests from a pod, a node or outside",
    maxArgs: 3,
    details: [...packets, "for example: send web-1 svc/shop/cart:80 5"],
    run: async (playground, [from, to, times], print) => {
      if (from === undefined || to === undefined)
        throw new CommandError("FROM and TO are required, for example: send web-1 svc/shop/cart:80");
      const count = wholeNumber(times ?? "1", 1, 100, "send web-1 svc/shop/cart:80 5");
      for (let i = 0; i < count; i++) print(sentText(await playground.send(from, to)));
      return [];
    },
  },
  explain: {
    usage: "explain FROM TO",
    summary: "show how a packet is routed, and why",
    maxArgs: 2,
    details: [...packets, "for example: explain outside nodeport:30080"],
    run: async (playground, [from, to]) => {
      if (from === undefined || to === undefined)
        throw new CommandError("FROM and TO are required, for example: explain outside nodeport:30080");
      return (await playground.explain(from, to)).trimEnd().split("\n");
    },
  },
  flows: {
    usage: "flows [SELECTOR]",
    summary: "list tracked connections of Services, on every node",
    details: ["SELECTOR: svc/shop/web, pod/web-1, 10.0.1.1:8080, :30080", "for example: flows svc/shop/cart"],
    run: (_, [selector]) => flowLines(selector),
  },
  scale: {
    usage: "scale DEPLOYMENT N",
    summary: "set the number of pods of a Deployment",
    maxArgs: 2,
    run: change((playground, [name, replicas = ""]) => {
      const count = wholeNumber(replicas, 0, 50, "scale web 5");
      playground.scale(named(name, "scale web 5"), count);
      return `${name} now has ${count} ${count === 1 ? "pod" : "pods"}`;
    }),
  },
  stop: {
    usage: "stop POD [SECONDS]",
    summary: "delete a pod; it serves during its grace period (5 s)",
    maxArgs: 2,
    run: change((playground, [name, seconds]) => {
      const grace = seconds === undefined ? undefined : wholeNumber(seconds, 0, 600, "stop web-1 10");
      playground.stop(named(name, "stop web-1"), grace);
      return `${name} is terminating`;
    }),
  },
  kill: {
    usage: "kill POD",
    summary: "crash a pod; its Deployment starts another",
    run: change((playground, [name]) => {
      playground.kill(named(name, "kill web-1"));
      return `${name} is gone`;
    }),
  },
  unready: {
    usage: "unready POD",
    summary: "mark a pod not ready: it runs without new traffic",
    run: change((playground, [name]) => {
      playground.setReady(named(name, "unready web-1"), false);
      return `${name} is not ready`;
    }),
  },
  ready: {
    usage: "ready POD",
    summary: "mark a pod ready",
    run: change((playground, [name]) => {
      playground.setReady(named(name, "ready web-1"), true);
      return `${name} is ready`;
    }),
  },
  drain: {
    usage: "drain NODE",
    summary: "cordon a node and delete its pods",
    run: change((playground, [name]) => {
      playground.drain(named(name, "drain node-a"));
      return `${name} is drained`;
    }),
  },
  uncordon: {
    usage: "uncordon NODE",
    summary: "allow pods on a node again",
    run: change((playground, [name]) => {
      playground.uncordon(named(name, "uncordon node-a"));
      return `${name} is uncordoned`;
    }),
  },
  flush: {
    usage: "flush NODE",
    summary: "flush all rules of a node; its proxy restores them",
    run: change((playground, [name]) => {
      playground.flush(named(name, "flush node-a"));
      return `flushed all rules of ${name}, as another program might do`;
    }),
  },
  wait: {
    usage: "wait [SECONDS]",
    summary: "wait, or wait until the rules of all nodes are synced",
    run: async (playground, [seconds]) => {
      if (seconds !== undefined) await sleep(wholeNumber(seconds, 0, 60, "wait 6") * 1000);
      else if (!(await playground.settled())) return ["the rules are not synced yet"];
      return [];
    },
  },
  help: {
    usage: "help [COMMAND]",
    summary: "list the commands, or describe one",
    run: async (_, [name]) => (name === undefined ? helpLines() : helpOf(name)),
  },
  quit: {
    usage: "quit",
    summary: "exit and remove everything, like Ctrl-C",
    maxArgs: 0,
    run: async () => [],
  },
};

/** Runs one line; a CommandError becomes output. `print` receives each line as soon as it is known. */
export async function runLine(
  playground: Playground,
  line: string,
  print: Print = () => {},
): Promise<readonly string[]> {
  try {
    return await runCommand(playground, line, print);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    print(error.message);
    return [error.message];
  }
}

/** The same for scripts: throws CommandError. */
export async function runCommand(
  playground: Playground,
  line: string,
  print: Print = () => {},
): Promise<readonly string[]> {
  const [name = "", ...args] = line.trim().split(/\s+/);
  const { usage, maxArgs = 1, run } = commandOf(name);
  if (args.length > maxArgs)
    throw new CommandError(`unexpected argument ${JSON.stringify(args[maxArgs])}; usage: ${usage}`);
  const lines: string[] = [];
  const collect = (each: string) => {
    lines.push(each);
    print(each);
  };
  for (const each of await run(playground, args, collect)) collect(each);
  return lines;
}

function commandOf(name: string): Command {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command !== undefined) return command;
  const names = Object.keys(commands);
  const near = closest(name, names);
  const hint = near === null ? `commands: ${names.join(", ")}` : `did you mean ${near}?`;
  throw new CommandError(`unknown command ${JSON.stringify(name)}; ${hint}`);
}

export function helpLines(): string[] {
  return Object.values(commands).map(helpLine);
}

function helpLine({ usage, summary }: Command): string {
  return `${usage.padEnd(21)} ${summary}`;
}

function helpOf(name: string): string[] {
  const command = commandOf(name);
  return [helpLine(command), ...(command.details ?? [])];
}

/** `web-1 → svc/shop/cart:80: answered by cart-1 on node-a (10.0.1.4:8080), which saw 10.0.1.1; 1.2 ms`. */
export function sentText({ from, to, result }: Sent): string {
  return `${from} → ${to}: ${resultText(result)}; ${result.ms} ms`;
}

function resultText(result: SendResult): string {
  switch (result.kind) {
    case "answered": {
      const { pod, node, endpoint, saw } = result.by;
      return pod === ""
        ? `answered by ${endpoint}`
        : `answered by ${pod} on ${node} (${endpoint}), which saw ${saw}`;
    }
    case "rejected":
      return `rejected by the proxy of ${result.node}`;
    case "refused":
      return result.by === null ? "refused" : `refused by ${result.by}: nothing listens there`;
    case "closed":
      return "connection accepted, then closed without an answer";
    case "silence":
      return "no answer";
    case "unreachable":
      return "unreachable: no route leads there";
  }
}

function named(name: string | undefined, example: string): string {
  if (name === undefined) throw new CommandError(`a name is required, for example: ${example}`);
  return name;
}

function wholeNumber(text: string, least: number, most: number, example: string): number {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw new CommandError(`expected a number from ${least} to ${most}, for example: ${example}`);
}

/** Prints the change before the proxies report their Syncs, then waits until they are done. */
function change(apply: (playground: Playground, args: readonly string[]) => string): Command["run"] {
  return async (playground, args, print) => {
    print(apply(playground, args));
    await playground.settled();
    return [];
  };
}
