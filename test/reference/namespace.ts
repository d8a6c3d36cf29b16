// A private network namespace for one program under test, with a foot in it for the test's own process.
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { Server } from "node:net";
import { promisify } from "node:util";

const run = promisify(execFile);

export type Namespace = {
  readonly name: string;
  /** Runs a command inside and gives its standard output; throws when it fails. */
  run(command: string, ...args: readonly string[]): Promise<string>;
  /** Starts a command inside; it is killed, at the latest, by `remove`. */
  start(command: string, args: readonly string[], output: number | "ignore"): ChildProcess;
  /** A listening socket inside that this process accepts from. */
  listen(host: string, port: number): Promise<Server>;
  /** The body of an HTTP GET made inside; null when nothing answers. */
  get(url: string): Promise<string | null>;
  remove(): Promise<void>;
};

let count = 0;

export async function createNamespace(purpose: string): Promise<Namespace> {
  const name = `turnout-${purpose}-${process.pid}-${count++}`;
  execFileSync("ip", ["netns", "add", name]);
  const children = new Set<ChildProcess>();
  const start = (command: string, args: readonly string[], stdio: Stdio): ChildProcess => {
    const child = spawn("ip", ["netns", "exec", name, command, ...args], { stdio });
    children.add(child);
    child.once("exit", () => children.delete(child));
    return child;
  };
  const agent = start(process.execPath, ["-e", agentProgram], ["ignore", "inherit", "inherit", "ipc"]);
  const ask = questions(agent);
  return {
    name,
    run: async (command, ...args) =>
      (await run("ip", ["netns", "exec", name, command, ...args], { maxBuffer: 1 << 28 })).stdout,
    start: (command, args, output) => start(command, args, ["ignore", output, output]),
    listen: async (host, port) => (await ask({ listen: { host, port } })) as Server,
    get: async (url) => (await ask({ get: url })) as string | null,
    async remove() {
      await Promise.all([...children].map(stop));
      execFileSync("ip", ["netns", "delete", name]);
    },
  };
}

type Stdio = ("ignore" | "inherit" | "ipc" | number)[];
type Question = { readonly listen: { host: string; port: number } } | { readonly get: string };

// An fd keeps the namespace it was made in: the agent opens the listening socket and hands it over.
const agentProgram = `
process.on("message", ({ id, question: { listen, get } }) => {
  const answer = (value, handle) => process.send({ id, value }, handle, () => handle?.close());
  if (listen) {
    const server = require("node:net").createServer();
    server.on("error", (error) => answer({ error: String(error) }));
    server.listen(listen.port, listen.host, () => answer(null, server));
  } else {
    fetch(get).then((response) => response.text()).then((text) => answer({ text }), () => answer({ text: null }));
  }
});`;

function questions(agent: ChildProcess): (question: Question) => Promise<unknown> {
  const waiting = new Map<number, (value: unknown) => void>();
  let next = 0;
  agent.on("message", ({ id, value }: { id: number; value: Reply }, handle) => {
    const settle = waiting.get(id);
    waiting.delete(id);
    settle?.(handle instanceof Server ? handle : value);
  });
  return async (question) => {
    const id = next++;
    const reply = new Promise<unknown>((resolve) => waiting.set(id, resolve));
    agent.send({ id, question });
    const value = await reply;
    if (value instanceof Server) return value;
    const { error, text } = value as Exclude<Reply, null>;
    if (error !== undefined) throw new Error(`Cannot listen in a namespace: ${error}`);
    return text ?? null;
  };
}

type Reply = { readonly error?: string; readonly text?: string | null } | null;

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}
