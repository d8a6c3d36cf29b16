// The commands of the playground, typed at its prompt or read from a script: each gives lines of text.
import { setTimeout as sleep } from "node:timers/promises";
import { closest } from "../src/config/closest.ts";
import type { SendResult } from "./net/send.ts";
import { CommandError, type Playground, type Sent } from "./playground.ts";

type Print = (line: string) => void;

/** How packets are named, for `send` and `explain`. */
const packets = [
  "FROM: web-1 (a pod), node-a, outside, outside:203.0.113.200",
  "TO:   svc/shop/web:80, svc/shop/dns:dns, nodeport:30080, nodeport:30053/udp, 172.30.0.10:80",
];

type Command = {
  readonly usage: string;
  readonly summary: string;
  /** How many words may follow it, if not one. */
  readonly maxArgs?: number;
  /** What else `help` tells of it. */
  readonly details?: readonly string[];
  /** What comes of it; lines that come one by one are lines at once. */
  readonly run: (playground: Playground, args: readonly string[], print: Print) => Promise<readonly string[]>;
};

export const commands: Readonly<Record<string, Command>> = {
  send: {
    usage: "send FROM TO [TIMES]",
    summary: "requests from a pod, a node or outside; Enter: samples",
    maxArgs: 3,
    details: [...packets, "for example: send web-1 svc/shop/cart:80 5"],
    run: async (playground, [from, to, times], print) => {
      if (from === undefined || to === undefined)
        throw new CommandError("say from where to where, for example: send web-1 svc/shop/cart:80");
      const count = wholeNumber(times ?? "1", 1, 100, "send web-1 svc/shop/cart:80 5");
      for (let i = 0; i < count; i++) print(sentText(await playground.send(from, to)));
      return [];
    },
  },
  explain: {
    usage: "explain FROM TO",
    summary: "why such a packet goes where it goes",
    maxArgs: 2,
    details: [...packets, "for example: explain outside nodeport:30080"],
    run: async (playground, [from, to]) => {
      if (from === undefined || to === undefined)
        throw new CommandError("say which packet, for example: explain outside nodeport:30080");
      return (await playground.explain(from, to)).trimEnd().split("\n");
    },
  },
  scale: {
    usage: "scale SET N",
    summary: "a Deployment gets so many pods",
    maxArgs: 2,
    run: change((playground, [name, replicas = ""]) => {
      const count = wholeNumber(replicas, 0, 50, "scale web 5");
      playground.scale(named(name, "scale web 5"), count);
      return `${name} now has ${count} ${count === 1 ? "pod" : "pods"}`;
    }),
  },
  stop: {
    usage: "stop POD [SECONDS]",
    summary: "ends in its own time (5 s), and serves on until then",
    maxArgs: 2,
    run: change((playground, [name, seconds]) => {
      const grace = seconds === undefined ? undefined : wholeNumber(seconds, 0, 600, "stop web-1 10");
      playground.stop(named(name, "stop web-1"), grace);
      return `${name} is ending`;
    }),
  },
  kill: {
    usage: "kill POD",
    summary: "ends at once, as in a crash; its set starts another",
    run: change((playground, [name]) => {
      playground.kill(named(name, "kill web-1"));
      return `${name} is gone`;
    }),
  },
  unready: {
    usage: "unready POD",
    summary: "keeps running, gets no traffic; ready undoes it",
    run: change((playground, [name]) => {
      playground.setReady(named(name, "unready web-1"), false);
      return `${name} is not ready`;
    }),
  },
  ready: {
    usage: "ready POD",
    summary: "takes traffic again",
    run: change((playground, [name]) => {
      playground.setReady(named(name, "ready web-1"), true);
      return `${name} is ready`;
    }),
  },
  drain: {
    usage: "drain NODE",
    summary: "its pods end, others start elsewhere; uncordon undoes it",
    run: change((playground, [name]) => {
      playground.drain(named(name, "drain node-a"));
      return `${name} is drained`;
    }),
  },
  uncordon: {
    usage: "uncordon NODE",
    summary: "takes pods again",
    run: change((playground, [name]) => {
      playground.uncordon(named(name, "uncordon node-a"));
      return `${name} takes pods again`;
    }),
  },
  flush: {
    usage: "flush NODE",
    summary: "all rules there go, and see them repaired",
    run: change((playground, [name]) => {
      playground.flush(named(name, "flush node-a"));
      return `all rules of ${name} were flushed, as another program might do`;
    }),
  },
  wait: {
    usage: "wait [SECONDS]",
    summary: "so long, or until the kernels hold what is wanted",
    run: async (playground, [seconds]) => {
      if (seconds !== undefined) await sleep(wholeNumber(seconds, 0, 60, "wait 6") * 1000);
      else if (!(await playground.settled())) return ["the kernels do not hold what is wanted yet"];
      return [];
    },
  },
  help: {
    usage: "help [COMMAND]",
    summary: "this list, or more of one",
    run: async (_, [name]) => (name === undefined ? helpLines() : helpOf(name)),
  },
  quit: {
    usage: "quit",
    summary: "leaves, and removes everything; Ctrl-C too",
    maxArgs: 0,
    run: async () => [],
  },
};

/** Runs one line. Mistakes come back as text. `print` hears every line as it comes. */
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

/** The same for scripts; throws CannotDo when there is a mistake in the line. */
export async function runCommand(
  playground: Playground,
  line: string,
  print: Print = () => {},
): Promise<readonly string[]> {
  const [name = "", ...args] = line.trim().split(/\s+/);
  const { usage, maxArgs = 1, run } = commandOf(name);
  if (args.length > maxArgs)
    throw new CommandError(`cannot use ${JSON.stringify(args[maxArgs])}; the command is: ${usage}`);
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
  const hint = near === null ? `there are ${names.join(", ")}` : `did you mean ${near}?`;
  throw new CommandError(`there is no command ${JSON.stringify(name)}; ${hint}`);
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
      return "taken and closed without an answer";
    case "silence":
      return "no answer";
    case "unreachable":
      return "unreachable: no route leads there";
  }
}

function named(name: string | undefined, example: string): string {
  if (name === undefined) throw new CommandError(`say which one, for example: ${example}`);
  return name;
}

function wholeNumber(text: string, least: number, most: number, example: string): number {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw new CommandError(`say a number from ${least} to ${most}, for example: ${example}`);
}

/** A change, which is printed before the proxies report what they did about it; then they have caught up with it. */
function change(apply: (playground: Playground, args: readonly string[]) => string): Command["run"] {
  return async (playground, args, print) => {
    print(apply(playground, args));
    await playground.settled();
    return [];
  };
}
