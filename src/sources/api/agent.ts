// Pools connections that go through a proxy.
import { type AgentOptions, Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { Clock } from "../world.ts";
import { bareHost, portOf, tunnel } from "./proxy.ts";

type Connected = (error: Error | null, socket: Duplex) => void;

/** An agent whose connections to `server` are tunnelled. Assigned, not subclassed: only the way to connect differs. */
export function tunnelAgent(proxy: URL, server: URL, options: AgentOptions, clock: Clock): HttpAgent {
  const secure = server.protocol === "https:";
  const agent = secure ? new HttpsAgent(options) : new HttpAgent(options);
  agent.createConnection = (target: ConnectionOptions, connected?: Connected) => {
    const host = bareHost(server);
    const secured = (socket: Socket) =>
      secure ? connectTls({ servername: serverName(host), ...target, socket }) : socket;
    tunnel(proxy, host, portOf(server), clock)
      .then(secured)
      .then(
        (socket) => connected?.(null, socket),
        (error: Error) => connected?.(error, null as unknown as Duplex),
      );
    return undefined as unknown as Duplex;
  };
  return agent;
}

/** A certificate name cannot be an address. */
function serverName(host: string): string {
  return /^[0-9.]+$|:/.test(host) ? "" : host;
}
