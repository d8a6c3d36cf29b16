// `turnout playground`: a cluster on this machine to try things on, live on a terminal, or as plain lines.
import { readFile } from "node:fs/promises";
import type { Mode } from "../config/modes.ts";
import { judges } from "../explain/node-routes.ts";
import { parseManifests } from "../playground/cluster/example.ts";
import { runLine } from "../playground/commands.ts";
import { CannotStart } from "../playground/daemon.ts";
import { Playground } from "../playground/playground.ts";
import { TerminalView } from "../playground/terminal.ts";
import { makeTour } from "../playground/tour.ts";
import type { CommandWorld } from "./command.ts";
import { Mistake, withMistakes } from "./mistake.ts";
import { type OwnFlags, splitOwnFlags } from "./own-flags.ts";

export const playgroundHelp = `turnout playground: a cluster on this machine, in network namespaces of its own, to try things on

Usage: turnout playground [--mode=nftables] [--once] [--script=FILE] [--manifests=FILE] [--port=7443] [-o json]

  --mode       how the proxies work: nftables (default), iptables, ipvs (where the kernel has it) or userspace
  --once       makes the tour without a terminal, and ends
  --script     runs the commands in a file, one a line, and ends; # begins a comment
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

const flags = ["mode", "script", "manifests", "port", "o", "output"];

export async function playground(
  argv: readonly string[],
  world: CommandWorld,
  signal: AbortSignal,
): Promise<number> {
  const once = argv.includes("--once");
  const { given, rest } = splitOwnFlags(
    argv.filter((argument) => argument !== "--once"),
    flags,
  );
  if (rest.includes("--help") || rest.includes("-h")) {
    world.stdout(playgroundHelp);
    return 0;
  }
  return withMistakes("playground", world, () => play(given, rest, once, world, signal));
}

async function play(
  given: OwnFlags,
  rest: readonly string[],
  once: boolean,
  world: CommandWorld,
  signal: AbortSignal,
): Promise<number> {
  const mistake = mistakeIn(given, rest);
  if (mistake !== null) throw new Mistake(mistake);
  const script = given.script === undefined ? null : await textOf(given.script);
  const live = !once && script === null && process.stdin.isTTY === true && process.stdout.isTTY === true;
  try {
    return await (live ? onTerminal(given, signal) : asLines(given, world, { once, script }, signal));
  } catch (error) {
    if (!(error instanceof CannotStart)) throw error;
    world.stderr(
      `turnout playground: ${given.mode ?? "nftables"} mode does not work here: ${error.message}\n`,
    );
    return 1;
  }
}

function mistakeIn(given: OwnFlags, rest: readonly string[]): string | null {
  if (rest.length > 0) return `cannot use ${JSON.stringify(rest[0])}; --help shows what can be said`;
  if (!isMode(given.mode ?? "nftables"))
    return `--mode must be one of ${Object.keys(judges).join(", ")}, not ${JSON.stringify(given.mode)}`;
  if (!/^\d{1,5}$/.test(given.port ?? "0"))
    return `--port must be a number, for example --port=7443, not ${JSON.stringify(given.port)}`;
  if (process.getuid?.() !== 0)
    return "it makes network namespaces, which needs root: try sudo. Without root: turnout render --source=files:examples/shop --node=node-a";
  return null;
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new Mistake(`cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function isMode(text: string): text is Mode {
  return text in judges;
}

async function optionsOf(given: OwnFlags) {
  const mode = given.mode ?? "nftables";
  const manifests =
    given.manifests === undefined ? {} : { manifests: parseManifests(await textOf(given.manifests)) };
  return {
    mode: isMode(mode) ? mode : "nftables",
    port: Number(given.port ?? 7443),
    program: [process.execPath, ...process.execArgv, process.argv[1]!],
    ...manifests,
  };
}

async function onTerminal(given: OwnFlags, signal: AbortSignal): Promise<number> {
  process.stdout.write("starting…\n");
  const colour = process.env.NO_COLOR === undefined || process.env.NO_COLOR === "";
  const view = new TerminalView({ input: process.stdin, output: process.stdout, colour });
  const ground = await Playground.start({
    ...(await optionsOf(given)),
    synced: (news) => view.synced(news),
    said: (line) => view.say(line),
  });
  try {
    await view.run(ground, signal);
    return 0;
  } finally {
    await ground.close();
  }
}

type Plain = { readonly once: boolean; readonly script: string | null };

async function asLines(
  given: OwnFlags,
  world: CommandWorld,
  { once, script }: Plain,
  signal: AbortSignal,
): Promise<number> {
  const json = (given.o ?? given.output) === "json";
  const print = (line: string) => world.stdout(json ? jsonLine(line) : `${line}\n`);
  const started = Date.now();
  print("Starting a playground: two nodes, their pods and the outside, in network namespaces of their own.");
  const options = await optionsOf(given);
  const ground = await Playground.start({ ...options, said: print });
  try {
    print(
      `Ready after ${((Date.now() - started) / 1000).toFixed(1)} s: ${options.mode} mode on node-a and node-b.`,
    );
    print(`kubectl --kubeconfig=${ground.kubeconfig} get services,pods,nodes`);
    if (script !== null) await runScript(ground, script, print, signal);
    else await makeTour(ground, print, signal);
    if (once || script !== null || signal.aborted) return 0;
    print("\nServing until stopped; kubectl, turnout explain and turnout status can talk to it.");
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    return 0;
  } finally {
    await ground.close();
    print("Everything is removed.");
  }
}

/** `> ` begins a command, two spaces what came of it. */
function jsonLine(line: string): string {
  if (line.trim() === "") return "";
  const [kind, text] = line.startsWith("> ")
    ? ["command", line.slice(2)]
    : line.startsWith("  ")
      ? ["outcome", line.slice(2)]
      : ["note", line.replace(/^# /, "").trim()];
  return `${JSON.stringify({ [kind]: text })}\n`;
}

async function runScript(
  ground: Playground,
  script: string,
  print: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  for (const line of script.split("\n").map((each) => each.replace(/#.*/, "").trim())) {
    if (line === "" || signal.aborted) continue;
    if (line === "quit") return;
    print(`> ${line}`);
    for (const answer of await runLine(ground, line)) print(`  ${answer}`);
  }
}
