// The command `flows` at the prompt: the tracked connections of every node, as `turnout flows` prints them.
import { listFlows } from "../src/cli/flows/list.ts";
import { parseSelector, resolveSelector } from "../src/inspect/flow-selector.ts";
import { loadNode } from "../src/inspect/node-view.ts";
import { resolveTarget } from "../src/inspect/target.ts";
import { UsageError } from "../src/inspect/usage-error.ts";
import { systemClock } from "../src/observe/clock.ts";
import { matcherOf } from "../src/traffic/selector.ts";
import { nodePlaces } from "./net/layout.ts";
import { CommandError } from "./playground.ts";

const mostRows = 20;

/** Lines of all nodes; `text` selects flows as the argument of `turnout flows` does. */
export async function flowLines(text: string | undefined): Promise<readonly string[]> {
  try {
    const lines = [];
    for (const { name } of nodePlaces) lines.push(`${name}:`, ...(await linesOf(name, text)));
    return lines;
  } catch (error) {
    if (error instanceof UsageError) throw new CommandError(error.message);
    throw error;
  }
}

async function linesOf(node: string, text: string | undefined): Promise<readonly string[]> {
  const { signal } = new AbortController();
  let out = "";
  const print = (some: string) => {
    out += some;
  };
  const world = { stdout: print, stderr: print, clock: systemClock };
  const flags = { source: `playground:${process.pid}`, node, live: true };
  const quiet = { version: "0.0.0", environment: {}, stderr: () => {} };
  const target = await resolveTarget(flags, quiet);
  const view = await loadNode(target, signal, true);
  const selector =
    text === undefined
      ? ({ kind: "all", others: false } as const)
      : await resolveSelector(parseSelector(text, null), view.routes, target, signal);
  await listFlows({ view, matches: matcherOf(selector), output: "text", world, signal, limit: mostRows });
  return out.trimEnd().split("\n");
}
