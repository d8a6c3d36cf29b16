// Forwards UDP datagrams whole: a socket of its own for each client, forgotten when it has been silent for a while.
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import type { RelayBackend } from "./balancer.ts";
import { cannotListen, type Relay, type RelayOptions } from "./relay.ts";

export type UdpRelayOptions = RelayOptions & {
  /** A client without datagrams in either direction for so long is forgotten. */
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
  await bound(server, options);
  const forget = (key: string) => {
    const flow = flows.get(key);
    flows.delete(key);
    if (flow === undefined) return;
    clearTimeout(flow.timer);
    flow.socket.close();
  };
  server.on("message", (data, from) => {
    const key = `${from.address} ${from.port}`;
    const flow = flows.get(key) ?? open(key, from);
    if (flow === null) return;
    flow.timer.refresh();
    flow.send(data);
  });

  function open(key: string, from: RemoteInfo): Flow | null {
    const backend = flows.size < options.limit ? options.choose(from.address, 0) : null;
    options.onOutcome?.(backend === null ? "failed" : "forwarded");
    if (backend === null) return null;
    const socket = createSocket(backend.address.includes(":") ? "udp6" : "udp4");
    const flow = {
      backend,
      socket,
      timer: setTimeout(() => forget(key), options.idleMs).unref(),
      send: sender(socket),
    };
    // A refusal (ICMP) ends the flow: the client's next datagram gets another chance.
    socket.on("error", () => forget(key));
    socket.on("message", (data) => {
      flow.timer.refresh();
      server.send(data, from.port, from.address, () => {});
    });
    socket.connect(backend.port, backend.address);
    flows.set(key, flow);
    return flow;
  }

  return {
    port: server.address().port,
    open: () => flows.size,
    retain: (isStill) => {
      for (const [key, { backend }] of flows) if (!isStill(backend)) forget(key);
    },
    close: (cut) =>
      new Promise((resolve) => {
        if (cut) for (const key of [...flows.keys()]) forget(key);
        else for (const { timer } of flows.values()) timer.ref();
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
function sender(socket: Socket): (data: Uint8Array) => void {
  const waiting: Uint8Array[] = [];
  let isConnected = false;
  const send = (data: Uint8Array) => socket.send(data, () => {});
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

/** For bursts of many clients; the kernel takes no more than net.core.rmem_max. */
const recvBufferSize = 4 * 1024 * 1024;
