// The tool: finds the command that was asked for and runs it.
import "./v8.ts";
import { closest } from "../config/closest.ts";
import type { CommandWorld } from "./command.ts";
import { type Command, commands, overview } from "./commands.ts";
import { commandWorld, exitWith } from "./world.ts";

exitWith(main(process.argv.slice(2)));

function main([name, ...argv]: readonly string[]): Promise<number> {
  const world = commandWorld();
  const command = commandOf(name);
  if (command !== undefined) return command.run(argv, world, untilInterrupted());
  if (name === undefined || ["help", "--help", "-h"].includes(name)) {
    const subject = commandOf(argv[0]);
    if (subject !== undefined || argv.length === 0) {
      world.stdout(subject?.help ?? overview);
      return Promise.resolve(0);
    }
    return Promise.resolve(unknown(argv[0]!, world));
  }
  if (name !== "version" && name !== "--version") return Promise.resolve(unknown(name, world));
  world.stdout(`turnout ${world.version}\n`);
  return Promise.resolve(0);
}

function commandOf(name: string | undefined): Command | undefined {
  return name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined;
}

function unknown(name: string, world: CommandWorld): number {
  const names = Object.keys(commands);
  const near = closest(name, names);
  const hint = near === null ? `there are: ${names.join(", ")}` : `did you mean turnout ${near}?`;
  world.stderr(`turnout: there is no command ${JSON.stringify(name)}; ${hint}\n`);
  return 1;
}

/** The first SIGINT, SIGTERM or SIGHUP ends a command in order, the second at once. */
function untilInterrupted(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop.abort());
  return stop.signal;
}
