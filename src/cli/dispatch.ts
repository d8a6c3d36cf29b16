// Finds the command that was asked for; a name that is none is answered by the nearest one.
import { closest } from "../config/closest.ts";
import { type Command, commands, overview } from "./commands/index.ts";
import type { CommandWorld } from "./commands/kube-proxy.ts";

/** `signal` is asked for when a command runs. */
export function dispatch(
  [name, ...argv]: readonly string[],
  world: CommandWorld,
  signal: () => AbortSignal,
): Promise<number> {
  const command = commandOf(name);
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

/** `--live`, unless help is requested or it is a word after `--`. */
function readsKernel(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  const flags = end < 0 ? argv : argv.slice(0, end);
  return flags.includes("--live") && !flags.includes("--help") && !flags.includes("-h");
}

function help(subject: string | undefined, world: CommandWorld): number {
  if (subject === undefined) return print(world, overview);
  const command = commandOf(subject);
  return command === undefined ? unknown(subject, world) : print(world, command.help);
}

function commandOf(name: string | undefined): Command | undefined {
  return name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined;
}

function print(world: CommandWorld, text: string): number {
  world.stdout(text);
  return 0;
}

function unknown(name: string, world: CommandWorld): number {
  const names = Object.keys(commands);
  const near = closest(name, names);
  const hint = near === null ? `there are: ${names.join(", ")}` : `did you mean turnout ${near}?`;
  world.stderr(`turnout: there is no command ${JSON.stringify(name)}; ${hint}\n`);
  return 1;
}
