// `turnout playground`: a test cluster on this machine, with a live view on a terminal or as plain lines.
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { command } from "../src/cli/command.ts";
import type { CommandWorld } from "../src/cli/commands/kube-proxy.ts";
import { playgroundSpec } from "../src/cli/commands/playground.ts";
import type { Values } from "../src/cli/flags.ts";
import { UsageError, whyUnreadable } from "../src/inspect/usage-error.ts";
import type { OpenPage } from "../src/page/server.ts";
import { Failure } from "./api/http/failure.ts";
import { CannotStart } from "./cannot-start.ts";
import { type Manifest, parseManifests } from "./cluster/example.ts";
import { runCommand } from "./commands.ts";
import { openPlaygroundPage } from "./page.ts";
import { CommandError, Playground } from "./playground.ts";
import { TerminalView } from "./terminal.ts";
import { runTour } from "./tour.ts";

type Options = Awaited<ReturnType<typeof optionsOf>>;

type Flags = Values<typeof playgroundSpec.flags>;

export const playground = command(playgroundSpec, ({ flags }, world, signal) => play(flags, world, signal));

async function play(given: Flags, world: CommandWorld, signal: AbortSignal): Promise<number> {
  const { once = false } = given;
  const usageError = usageErrorIn(given);
  if (usageError !== null) throw new UsageError(usageError);
  const options = await optionsOf(given);
  const script = given.script === undefined ? null : await textOf(given.script);
  const live = !once && script === null && process.stdin.isTTY === true && process.stdout.isTTY === true;
  try {
    return await (live
      ? onTerminal(options, signal)
      : asPlainLines(options, world, { once, script, json: given.output === "json" }, signal));
  } catch (error) {
    if (error instanceof Failure)
      throw new UsageError(`${given.manifests ?? "the example"}: ${error.message}`);
    if (error instanceof CannotStart) throw new UsageError(error.message);
    throw error;
  }
}

function usageErrorIn(given: Flags): string | null {
  for (const name of ["port", "page-port"] as const)
    if (!/^\d{1,5}$/.test(given[name] ?? "0") || Number(given[name] ?? 0) > 65_535)
      return `--${name} must be a port, for example --${name}=7443, not ${JSON.stringify(given[name])}`;
  if (process.getuid?.() !== 0)
    return "the playground requires root to create network namespaces; use sudo, or without root: turnout render --source=files:examples/shop --node=node-a";
  return null;
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new UsageError(whyUnreadable(path, error));
  }
}

async function optionsOf(given: Flags) {
  const manifests = given.manifests === undefined ? {} : { manifests: await manifestsIn(given.manifests) };
  return {
    mode: given.mode ?? ("nftables" as const),
    port: Number(given.port ?? 7443),
    pagePort: Number(given["page-port"] ?? 7444),
    program: [process.execPath, ...process.execArgv, join(dirname(process.argv[1]!), "turnout.cjs")],
    ...manifests,
  };
}

async function manifestsIn(path: string): Promise<Manifest[]> {
  const text = await textOf(path);
  try {
    return parseManifests(text);
  } catch (error) {
    throw new UsageError(`${path}: ${(error as Error).message.split("\n")[0]}`);
  }
}

async function onTerminal(options: Options, signal: AbortSignal): Promise<number> {
  process.stdout.write("starting…\n");
  const colour = process.env.NO_COLOR === undefined || process.env.NO_COLOR === "";
  const view = new TerminalView({ input: process.stdin, output: process.stdout, colour });
  const playground = await Playground.start({
    ...options,
    onSync: (report) => view.synced(report),
    onMessage: (line) => view.print(line),
  });
  let page: OpenPage | null = null;
  try {
    page = await openPlaygroundPage(playground, options.pagePort);
    view.print(`Open in a browser: ${page.url}`);
    await view.run(playground, signal);
    return 0;
  } finally {
    process.stdout.write("removing everything…\n");
    await page?.close();
    await playground.close();
    process.stdout.write("Everything is removed.\n");
  }
}

type Plain = { readonly once: boolean; readonly script: string | null; readonly json: boolean };

async function asPlainLines(
  options: Options,
  world: CommandWorld,
  { once, script, json }: Plain,
  signal: AbortSignal,
): Promise<number> {
  const print = (line: string) => world.stdout(json ? jsonLine(line) : `${line}\n`);
  const started = Date.now();
  print("Starting a playground: two nodes, their pods and outside clients, each in a network namespace.");
  const playground = await Playground.start({ ...options, onMessage: print });
  let page: OpenPage | null = null;
  try {
    page = await openPlaygroundPage(playground, options.pagePort);
    print(
      `Ready after ${((Date.now() - started) / 1000).toFixed(1)} s: ${options.mode} mode on node-a and node-b.`,
    );
    print(`kubectl --kubeconfig=${playground.kubeconfig} get services,pods,nodes`);
    print(`Open in a browser: ${page.url}`);
    if (script !== null) return await runScript(playground, script, print, signal);
    await runTour(playground, print, signal);
    if (once || signal.aborted) return 0;
    print(
      "\nRunning until interrupted. Use kubectl, turnout explain and turnout status in another terminal.",
    );
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    return 0;
  } finally {
    await page?.close();
    await playground.close();
    print("Everything is removed.");
  }
}

/** `> ` starts a command, two spaces start its output. */
function jsonLine(line: string): string {
  if (line.trim() === "") return "";
  const [kind, text] = line.startsWith("> ")
    ? ["command", line.slice(2)]
    : line.startsWith("  ")
      ? ["outcome", line.slice(2)]
      : ["note", line.replace(/^# /, "").trim()];
  return `${JSON.stringify({ [kind]: text })}\n`;
}

/** Continues after a failed command; then returns 1. */
async function runScript(
  playground: Playground,
  script: string,
  print: (line: string) => void,
  signal: AbortSignal,
): Promise<number> {
  let code = 0;
  for (const line of script.split("\n").map((each) => each.replace(/#.*/, "").trim())) {
    if (line === "" || signal.aborted) continue;
    if (line === "quit") break;
    print(`> ${line}`);
    try {
      await runCommand(playground, line, (answer) => print(`  ${answer}`));
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      print(`  ${error.message}`);
      code = 1;
    }
  }
  return code;
}
