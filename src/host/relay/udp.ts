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
  const flows = new Map<string, Flow>();
  /** Clients that no backend ever answered, oldest first: they are dropped first when the limit is reached, as sources may be forged. */
  const unanswered = new Set<string>();
  await bound(server, options);
  server.on("message", (data, from) => {
    const key = `${from.address} ${from.port}`;
    const flow = flows.get(key) ?? open(key, from);
    if (flow === null) return;
    flow.timer.refresh();
    flow.send(data);
  });

  function open(key: string, from: RemoteInfo): Flow | null {
    const backend = options.choose(from.address, 0);
    const isServed = backend !== null && makeRoom();
    options.onOutcome?.(isServed ? "forwarded" : "failed");
    if (!isServed) return null;
    options.room.take(1);
    const socket = createSocket(backend.address.includes(":") ? "udp6" : "udp4");
    // A refusal (ICMP) ends the flow: the client's next datagram goes to another backend.
    const fail = () => forget(key, flow);
    const timer = setTimeout(fail, options.idleMs).unref();
    const flow: Flow = { backend, socket, timer, send: sender(socket, fail) };
    socket.on("error", fail);
    socket.on("message", (data) => {
      unanswered.delete(key);
      timer.refresh();
      if (takesMore(server)) server.send(data, from.port, from.address, () => {});
    });
    socket.connect(backend.port, backend.address);
    flows.set(key, flow);
    unanswered.add(key);
    return flow;
  }

  function makeRoom(): boolean {
    for (const key of unanswered) {
      if (hasRoom()) break;
      forget(key, flows.get(key));
    }
    return hasRoom();
  }

  function hasRoom(): boolean {
    return flows.size < Math.min(options.limit, options.room.share) && options.room.has(1);
  }

  function forget(key: string, flow: Flow | undefined): void {
    if (flow === undefined || flows.get(key) !== flow) return;
    flows.delete(key);
    unanswered.delete(key);
    clearTimeout(flow.timer);
    flow.socket.close();
    options.room.give(1);
  }

  const { port } = server.address();
  return {
    port,
    open: () => flows.size,
    // The kernel releases a port that it chose with the abort; an explicitly bound one stays.
    hasLostListener: () => server.address().port !== port,
    retain: (isStill) => {
      for (const [key, flow] of flows) if (!isStill(flow.backend)) forget(key, flow);
    },
    close: () =>
      new Promise((resolve) => {
        for (const [key, flow] of flows) forget(key, flow);
        server.close(() => resolve());
      }),
  };
}

function bound(server: Socket, options: UdpRelayOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => reject(cannotListen("UDP", options, cause)));
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
