// The real kube-proxy as a mode under test: it proves the world and the scenarios without any code of ours.
import { spawn } from "node:child_process";
import { get } from "node:http";
import { Server, Socket } from "node:net";
import { nodeName } from "../places.ts";
import type { Namespace as ProxyNamespace } from "../reference/namespace.ts";
import { type Mode, startProxy } from "../reference/proxy.ts";
import { configurationFor } from "./configuration.ts";
import type { ModeUnderTest } from "./judge.ts";
import { AF_INET, bind, connect, listen, SOCK_STREAM, setOption, socket } from "./libc.ts";
import type { Namespace } from "./netns.ts";

export function realKubeProxy(program: string, mode: Mode): ModeUnderTest {
  let running: Awaited<ReturnType<typeof startProxy>> | null = null;
  return {
    name: mode,
    async apply(world, objects, settings) {
      const namespace = namespaceOf(world.node);
      running = await startProxy(namespace, program, configurationFor(mode, settings), nodeName, objects);
      await running.ready();
    },
    async clear() {
      await running?.stop();
      running = null;
    },
  };
}

/** What `startProxy` wants to know of a namespace, without another process in it. */
function namespaceOf(netns: Namespace): Omit<ProxyNamespace, "remove"> {
  return {
    name: netns.name,
    run: async (command, ...args) => netns.run(command, ...args),
    start: (command, args, output) =>
      spawn("ip", ["netns", "exec", netns.name, command, ...args], { stdio: ["ignore", output, output] }),
    listen: async (host, port) => {
      const fd = netns.inside(() => socket(AF_INET, SOCK_STREAM, 0));
      const [SOL_SOCKET, SO_REUSEADDR] = [1, 2];
      setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
      bind(fd, { address: host, port });
      listen(fd);
      const server = new Server();
      await new Promise<void>((resolve) => void server.listen({ fd }, resolve));
      return server;
    },
    get: (url) => httpGet(netns, url),
  };
}

/** The body of an HTTP GET made inside a namespace; null when nothing answers. */
export function httpGet(netns: Namespace, url: string): Promise<string | null> {
  const { hostname, port } = new URL(url);
  const fd = netns.inside(() => socket(AF_INET, SOCK_STREAM, 0));
  connect(fd, { address: hostname, port: Number(port) });
  return new Promise((resolve) => {
    const request = get(url, { createConnection: () => new Socket({ fd }) }, (response) => {
      response.setEncoding("utf8");
      let body = "";
      response.on("data", (text: string) => {
        body += text;
      });
      response.on("end", () => resolve(body));
    });
    request.on("error", () => resolve(null));
  });
}
