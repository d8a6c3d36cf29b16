// The tool: each command in a file of its own.
import type { CommandWorld } from "./command.ts";
import { diff } from "./diff.ts";
import { explain } from "./explain.ts";
import { playground } from "./playground.ts";
import { render } from "./render.ts";
import { run } from "./run.ts";
import { status } from "./status.ts";
import { commandWorld, exitWith } from "./world.ts";

type Command = {
  readonly summary: string;
  readonly run: (argv: readonly string[], world: CommandWorld, signal: AbortSignal) => Promise<number>;
};

const commands: Readonly<Record<string, Command>> = {
  explain: { summary: "why a packet goes where it goes", run: explain },
  diff: { summary: "what another cluster state would change, or how the kernel differs", run: diff },
  status: { summary: "how the daemon on this machine is doing", run: status },
  playground: { summary: "a cluster on this machine to try things on", run: playground },
  render: { summary: "what would be on a node, without touching anything", run: render },
  run: { summary: "the daemon: kube-proxy's flags and a few of our own", run },
};

const help = `turnout: a Kubernetes service proxy that is fast, verifiable and explains itself

Usage: turnout COMMAND [flags]

${Object.entries(commands)
  .map(([name, { summary }]) => `  ${name.padEnd(12)} ${summary}`)
  .join("\n")}

turnout COMMAND --help tells more. bin/kube-proxy is the drop-in for kube-proxy.
`;

exitWith(main(process.argv.slice(2)));

function main([name, ...argv]: readonly string[]): Promise<number> {
  const world = commandWorld();
  const command = name === undefined ? undefined : commands[name];
  if (command !== undefined) return command.run(argv, world, untilInterrupted());
  const isHelp = name === undefined || ["help", "--help", "-h"].includes(name);
  if (isHelp) world.stdout(help);
  else
    world.stderr(
      `turnout: there is no command ${JSON.stringify(name)}; there are: ${Object.keys(commands).join(", ")}\n`,
    );
  return Promise.resolve(isHelp ? 0 : 1);
}

/** The first SIGINT or SIGTERM ends a command in order, the second at once. */
function untilInterrupted(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  return stop.signal;
}
