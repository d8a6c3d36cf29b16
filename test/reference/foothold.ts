// A program under test in a network namespace: started, served and queried from this process.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Server, Socket } from "node:net";
import { httpGet } from "../kernel/http.ts";
import { AF_INET, bind, close, connect, listen, SOCK_STREAM, setOption, socket } from "../kernel/libc.ts";
import type { Namespace } from "../kernel/netns.ts";

export type Foothold = {
  readonly netns: Namespace;
  /** Starts a command inside; it is killed, at the latest, by `leave`. */
  start(command: string, args: readonly string[], output: number | "ignore"): ChildProcess;
  /** A listening socket inside that this process accepts from. */
  listen(host: string, port: number): Promise<Server>;
  /** The body of an HTTP GET made inside; null when nothing answers. */
  get(url: string): Promise<string | null>;
  /** Kills what was started and still runs, and closes what still listens; it can be used again after that. */
  leave(): Promise<void>;
};

export function enter(netns: Namespace): Foothold {
  const children = new Set<ChildProcess>();
  const listeners = new Set<Server>();
  return {
    netns,
    start(command, args, output) {
      const stdio = ["ignore", output, output] as const;
      const child = spawn("ip", ["netns", "exec", netns.name, command, ...args], { stdio: [...stdio] });
      children.add(child);
      child.once("exit", () => children.delete(child));
      return child;
    },
    async listen(host, port) {
      const server = await listenInside(netns, host, port);
      listeners.add(server);
      return server;
    },
    get: async (url) => (await httpGet(netns, url))?.body ?? null,
    async leave() {
      for (const server of listeners) server.close();
      listeners.clear();
      await Promise.all([...children].map(kill));
    },
  };
}

/** A socket keeps the namespace it was created in. */
async function listenInside(netns: Namespace, address: string, port: number): Promise<Server> {
  const fd = netns.inside(() => socket(AF_INET, SOCK_STREAM, 0));
  const [SOL_SOCKET, SO_REUSEADDR] = [1, 2];
  try {
    setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    bind(fd, { address, port });
    listen(fd);
  } catch (error) {
    close(fd);
    throw error;
  }
  const server = new Server();
  await new Promise<void>((resolve) => void server.listen({ fd }, resolve));
  return server;
}

/** A connection made inside; one to this machine is there before connect() returns. */
export function connectInside(netns: Namespace, address: string, port: number): Socket {
  const fd = netns.inside(() => socket(AF_INET, SOCK_STREAM, 0));
  connect(fd, { address, port });
  return new Socket({ fd, readable: true, writable: true });
}

/** Whether it still runs. */
export function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null && child.pid !== undefined;
}

async function kill(child: ChildProcess): Promise<void> {
  if (!isAlive(child)) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}
