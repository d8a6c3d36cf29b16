// The tool: finds the command that was asked for and runs it.
import "./v8.ts";
import { commands, overview } from "./commands.ts";
import { commandWorld, exitWith } from "./world.ts";

exitWith(main(process.argv.slice(2)));

function main([name, ...argv]: readonly string[]): Promise<number> {
  const world = commandWorld();
  const command = name === undefined ? undefined : commands[name];
  if (command !== undefined) return command.run(argv, world, untilInterrupted());
  const isHelp = name === undefined || ["help", "--help", "-h"].includes(name);
  if (isHelp) world.stdout(overview);
  else
    world.stderr(
      `turnout: there is no command ${JSON.stringify(name)}; there are: ${Object.keys(commands).join(", ")}\n`,
    );
  return Promise.resolve(isHelp ? 0 : 1);
}

/** The first SIGINT, SIGTERM or SIGHUP ends a command in order, the second at once. */
function untilInterrupted(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop.abort());
  return stop.signal;
}
