// Runs the command that the first argument names; for an unknown name the nearest one is suggested.
import { closest } from "../config/closest.ts";
import { commands, overview } from "./commands/index.ts";
import type { CommandWorld } from "./commands/kube-proxy.ts";
import { requestsHelp } from "./flags.ts";
import { helpText } from "./help.ts";

/** `signal` is called only when a command runs. */
export function dispatch(
  [name, ...argv]: readonly string[],
  world: CommandWorld,
  signal: () => AbortSignal,
): Promise<number> {
  const command = commands.get(name ?? "");
  if (command !== undefined) {
    const missing = readsKernel(argv) ? world.missingRights() : null;
    if (missing === null) return command.run(argv, world, signal());
    world.stderr(`turnout ${name}: cannot use --live: ${missing}\n`);
    return Promise.resolve(1);
  }
  if (name === undefined || ["help", "--help", "-h"].includes(name))
    return Promise.resolve(help(argv[0], world));
  if (name === "version" || name === "--version")
    return Promise.resolve(print(world, `turnout ${world.version}\n`));
  return Promise.resolve(unknown(name, world));
}

/** `--live`, unless help is requested or it is an argument after `--`. */
function readsKernel(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  const flags = end < 0 ? argv : argv.slice(0, end);
  return flags.includes("--live") && !requestsHelp(argv);
}

function help(subject: string | undefined, world: CommandWorld): number {
  if (subject === undefined) return print(world, overview);
  const command = commands.get(subject);
  return command === undefined ? unknown(subject, world) : print(world, helpText(command.spec));
}

function print(world: CommandWorld, text: string): number {
  world.stdout(text);
  return 0;
}

function unknown(name: string, world: CommandWorld): number {
  const names = [...commands.keys()];
  const near = closest(name, names);
  const hint = near === null ? `commands: ${names.join(", ")}` : `did you mean turnout ${near}?`;
  world.stderr(`turnout: unknown command ${JSON.stringify(name)}; ${hint}\n`);
  return 1;
}
