// Forwards UDP datagrams: one socket per client, closed after an idle timeout.
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import type { RelayBackend } from "./balancer.ts";
import { cannotListen, type Relay, type RelayOptions } from "./relay.ts";

export type UdpRelayOptions = RelayOptions & {
  /** A client without datagrams in either direction for this long is dropped. */
  readonly idleMs: number;
};

type Flow = {
  readonly backend: RelayBackend;
  readonly socket: Socket;
  readonly timer: NodeJS.Timeout;
  readonly send: (data: Uint8Array) => void;
};

/** Rejects with HostError when the address cannot be listened on. */
export async function openUdpRelay(options: UdpRelayOptions): Promise<Relay> {
  const type = options.host.includes(":") ? "udp6" : "udp4";
  const server = createSocket({ type, ipv6Only: type === "udp6", recvBufferSize });
  const flows = new Flows(options, server);
  await bound(server, options);
  server.on("message", (data, from) => {
    const flow = flows.of(from);
    if (flow === null) return;
    flow.timer.refresh();
    flow.send(data);
  });

  const { port } = server.address();
  return {
    port,
    open: () => flows.size,
    // The kernel releases a port that it chose with the abort; an explicitly bound one stays.
    hasLostListener: () => server.address().port !== port,
    retain: (isStill) => flows.retain(isStill),
    close: () =>
      new Promise((resolve) => {
        flows.retain(() => false);
        server.close(() => resolve());
      }),
  };
}

/** The flows of one relay, by client. */
class Flows {
  readonly #options: UdpRelayOptions;
  readonly #server: Socket;
  readonly #flows = new Map<string, Flow>();
  /** Clients that no backend ever answered, oldest first: they are dropped first when the limit is reached, as sources may be forged. */
  readonly #unanswered = new Set<string>();

  constructor(options: UdpRelayOptions, server: Socket) {
    this.#options = options;
    this.#server = server;
  }

  get size(): number {
    return this.#flows.size;
  }

  /** The client's flow, or a new one; null: there is no backend or no descriptor for it. */
  of(client: RemoteInfo): Flow | null {
    const key = `${client.address} ${client.port}`;
    return this.#flows.get(key) ?? this.#open(key, client);
  }

  /** Closes the flows to other backends. */
  retain(isStill: (backend: RelayBackend) => boolean): void {
    for (const [key, flow] of this.#flows) if (!isStill(flow.backend)) this.#forget(key, flow);
  }

  #open(key: string, client: RemoteInfo): Flow | null {
    const { choose, onOutcome, room, idleMs } = this.#options;
    const backend = choose(client.address, 0);
    const isServed = backend !== null && this.#makeRoom();
    onOutcome?.(isServed ? "forwarded" : "failed", isServed ? backend : null);
    if (!isServed) return null;
    room.take(1);
    const socket = createSocket(backend.address.includes(":") ? "udp6" : "udp4");
    // A refusal (ICMP) ends the flow: the client's next datagram goes to another backend.
    const fail = () => this.#forget(key, flow);
    const timer = setTimeout(fail, idleMs).unref();
    const flow: Flow = { backend, socket, timer, send: sender(socket, fail) };
    socket.on("error", fail);
    socket.on("message", (data) => {
      this.#unanswered.delete(key);
      timer.refresh();
      if (takesMore(this.#server)) this.#server.send(data, client.port, client.address, () => {});
    });
    socket.connect(backend.port, backend.address);
    this.#flows.set(key, flow);
    this.#unanswered.add(key);
    return flow;
  }

  #makeRoom(): boolean {
    for (const key of this.#unanswered) {
      if (this.#hasRoom()) break;
      this.#forget(key, this.#flows.get(key));
    }
    return this.#hasRoom();
  }

  #hasRoom(): boolean {
    const { limit, room } = this.#options;
    return this.#flows.size < Math.min(limit, room.share) && room.has(1);
  }

  #forget(key: string, flow: Flow | undefined): void {
    if (flow === undefined || this.#flows.get(key) !== flow) return;
    this.#flows.delete(key);
    this.#unanswered.delete(key);
    clearTimeout(flow.timer);
    flow.socket.close();
    this.#options.room.give(1);
  }
}

function bound(server: Socket, options: UdpRelayOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => {
      // Node.js keeps the descriptor of a socket that cannot bind.
      server.close();
      reject(cannotListen("UDP", options, cause));
    });
    server.bind({ address: options.host, port: options.port }, () => {
      server.removeAllListeners("error");
      server.on("error", () => {});
      resolve();
    });
  });
}

/** Datagrams that come before the socket is connected wait for it: a handful, not more. */
function sender(socket: Socket, fail: () => void): (data: Uint8Array) => void {
  const waiting: Uint8Array[] = [];
  let isConnected = false;
  const send = (data: Uint8Array) => {
    if (!takesMore(socket)) return;
    socket.send(data, (error) => {
      if (error !== null) fail();
    });
  };
  socket.once("connect", () => {
    isConnected = true;
    for (const data of waiting.splice(0)) send(data);
  });
  return (data) => {
    if (isConnected) send(data);
    else if (waiting.length < mostWaiting) waiting.push(data);
  };
}

const mostWaiting = 16;

/** The queue of a socket that cannot send; further datagrams are dropped, as on any full link. */
const mostQueued = { bytes: 1024 * 1024, datagrams: 1024 };

/** Datagrams are counted too: one of a single byte costs about a kilobyte. */
function takesMore(socket: Socket): boolean {
  return socket.getSendQueueSize() < mostQueued.bytes && socket.getSendQueueCount() < mostQueued.datagrams;
}

/** For bursts of many clients; the kernel takes no more than net.core.rmem_max. */
const recvBufferSize = 4 * 1024 * 1024;
