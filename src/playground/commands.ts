// The commands of the playground, typed at its prompt or read from a script: each gives lines of text.
import { setTimeout as sleep } from "node:timers/promises";
import type { Fate } from "./net/send.ts";
import { CannotDo, type Playground, type Sent } from "./playground.ts";

type Command = {
  readonly usage: string;
  readonly summary: string;
  readonly run: (playground: Playground, args: readonly string[]) => Promise<readonly string[]>;
};

export const commands: Readonly<Record<string, Command>> = {
  send: {
    usage: "send FROM TO [TIMES]",
    summary: "a request, from a pod, a node or outside; Enter alone sends samples",
    run: async (playground, [from, to, times = "1"]) => {
      if (from === undefined || to === undefined)
        throw new CannotDo("say from where to where, for example: send web-1 svc/shop/cart:80");
      const lines: string[] = [];
      for (let i = 0; i < Math.min(100, Number(times) || 1); i++)
        lines.push(sentText(await playground.send(from, to)));
      return lines;
    },
  },
  explain: {
    usage: "explain FROM TO",
    summary: "why such a packet goes where it goes",
    run: async (playground, [from, to]) => {
      if (from === undefined || to === undefined)
        throw new CannotDo("say which packet, for example: explain outside nodeport:30080");
      return (await playground.explain(from, to)).trimEnd().split("\n");
    },
  },
  scale: {
    usage: "scale SET N",
    summary: "so many pods of web, cart, stock or dns",
    run: changing((playground, [name = "", replicas = ""]) => {
      playground.scale(name, replicas === "" ? Number.NaN : Number(replicas));
      return `${name} now has ${replicas} pods`;
    }),
  },
  stop: {
    usage: "stop POD [SECONDS]",
    summary: "ends in its own time (5 s), and answers meanwhile if nobody else can",
    run: changing((playground, [name = "", seconds]) => {
      playground.stop(name, seconds === undefined ? undefined : Number(seconds) || 0);
      return `${name} is ending`;
    }),
  },
  kill: {
    usage: "kill POD",
    summary: "ends at once, as in a crash; its set starts another",
    run: changing((playground, [name = ""]) => {
      playground.kill(name);
      return `${name} is gone`;
    }),
  },
  unready: {
    usage: "unready POD",
    summary: "keeps running, gets no traffic; ready undoes it",
    run: changing((playground, [name = ""]) => {
      playground.setReady(name, false);
      return `${name} is not ready`;
    }),
  },
  ready: {
    usage: "ready POD",
    summary: "takes traffic again",
    run: changing((playground, [name = ""]) => {
      playground.setReady(name, true);
      return `${name} is ready`;
    }),
  },
  drain: {
    usage: "drain NODE",
    summary: "its pods end and others start elsewhere; uncordon lets them back",
    run: changing((playground, [name = ""]) => {
      playground.drain(name);
      return `${name} is drained`;
    }),
  },
  uncordon: {
    usage: "uncordon NODE",
    summary: "takes pods again",
    run: changing((playground, [name = ""]) => {
      playground.uncordon(name);
      return `${name} takes pods again`;
    }),
  },
  flush: {
    usage: "flush NODE",
    summary: "nft flush ruleset there, and see it repaired",
    run: changing(async (playground, [name = ""]) => {
      await playground.flush(name);
      return `the rules of ${name} were flushed by somebody else`;
    }),
  },
  wait: {
    usage: "wait [SECONDS]",
    summary: "so long, or until the kernels hold what is wanted",
    run: async (playground, [seconds]) => {
      if (seconds === undefined) await playground.settled();
      else await sleep(Math.min(60, Number(seconds) || 1) * 1000);
      return [];
    },
  },
  help: { usage: "help", summary: "this list", run: async () => helpLines() },
};

/** Runs one line. Mistakes come back as text. */
export async function runLine(playground: Playground, line: string): Promise<readonly string[]> {
  const [name = "", ...args] = line.trim().split(/\s+/);
  const command = commands[name];
  if (command === undefined)
    return [
      `there is no command ${JSON.stringify(name)}; there are ${Object.keys(commands).join(", ")}, quit`,
    ];
  try {
    return await command.run(playground, args);
  } catch (error) {
    if (!(error instanceof CannotDo)) throw error;
    return [error.message];
  }
}

export function helpLines(): string[] {
  return Object.values(commands).map(({ usage, summary }) => `${usage.padEnd(21)} ${summary}`);
}

/** `web-1 → svc/shop/cart:80: answered by cart-1 on node-a (10.0.1.4:8080), which saw 10.0.1.1; 1.2 ms`. */
export function sentText({ from, to, fate }: Sent): string {
  return `${from} → ${to}: ${fateText(fate)}; ${fate.ms} ms`;
}

function fateText(fate: Fate): string {
  switch (fate.kind) {
    case "answered": {
      const { pod, node, endpoint, saw } = fate.by;
      return pod === ""
        ? `answered by ${endpoint}`
        : `answered by ${pod} on ${node} (${endpoint}), which saw ${saw}`;
    }
    case "refused":
      return "refused at once";
    case "closed":
      return "taken and closed without an answer";
    case "silence":
      return "no answer";
    case "unreachable":
      return "unreachable";
  }
}

/** A change, and then the proxies have caught up with it. */
function changing(
  change: (playground: Playground, args: readonly string[]) => string | Promise<string>,
): Command["run"] {
  return async (playground, args) => {
    const line = await change(playground, args);
    await playground.settled();
    return [line];
  };
}
