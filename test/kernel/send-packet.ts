// Sends a single connection, datagram or raw packet from a place and returns its result.
import { type Address, joinHostPort } from "../../src/model/address.ts";
import {
  AF_INET,
  AF_INET6,
  bind,
  close,
  connect,
  domainOf,
  type Endpoint,
  type IcmpError,
  IPPROTO,
  icmpError,
  localName,
  noteIcmpErrors,
  POLLIN,
  pendingError,
  receive,
  SOCK_DGRAM,
  SOCK_RAW,
  SOCK_STREAM,
  type SystemError,
  send,
  socket,
} from "./libc.ts";
import type { Namespace } from "./netns.ts";
import { icmpEcho, sctpInit, sctpText, withoutIPv4Header } from "./packets.ts";
import type { Poller } from "./poller.ts";
import { type Greeting, parseGreeting } from "./servers.ts";

export type ProbeProtocol = "tcp" | "udp" | "sctp" | "icmp";

/** `client` is what the sender's own socket thinks its name is. */
export type SendResult =
  | {
      readonly kind: "answered";
      readonly endpoint: string;
      readonly saw: Endpoint;
      readonly client: Endpoint;
    }
  | { readonly kind: "icmp"; readonly error: IcmpError }
  | { readonly kind: "errno"; readonly errno: string }
  | { readonly kind: "silence"; readonly client: Endpoint };

/** Where a try starts. */
export type Sender = { readonly netns: Namespace; readonly poller: Poller; readonly source: Address | null };

/** A lost first SYN is sent again after a second, and so is one whose ICMPv6 error came too early to be used. */
export const usualTimeoutMs = 2600;

/** For packets that expect a response, also from a relay on a busy machine. */
export const longTimeoutMs = 15_000;

/** Sends one packet (and what follows from it) and waits for its result. */
export function tryOnce(
  from: Sender,
  protocol: ProbeProtocol,
  to: Endpoint,
  timeoutMs = usualTimeoutMs,
): Promise<SendResult> {
  const domain = domainOf(to.address);
  const start = (type: number, number: number, exchange: Exchange) =>
    attempt(from, to, domain, type, number, exchange, timeoutMs);
  switch (protocol) {
    case "tcp":
      return start(SOCK_STREAM, 0, stream);
    case "udp":
      return start(SOCK_DGRAM, 0, datagram);
    case "sctp":
      return start(SOCK_RAW, IPPROTO.sctp, association(to.port));
    case "icmp":
      return start(SOCK_RAW, domain === AF_INET ? IPPROTO.icmp : IPPROTO.icmpv6, echo(domain));
  }
}

/** How a protocol starts, and how its response and its errors are recognised. */
type Exchange = {
  /** The first packet, when the kernel does not make it itself. */
  readonly first: Buffer | null;
  readonly sourcePort: number | null;
  /** The greeting's text, null for another sender's packet. */
  readonly answer: (packet: Buffer) => string | null;
  /** Whether the packet inside an ICMP error is ours. */
  readonly owns: (packet: Buffer) => boolean;
};

const stream: Exchange = { first: null, sourcePort: null, answer: String, owns: () => true };

const datagram: Exchange = { ...stream, first: Buffer.from("hello") };

let lastPort = 20_000;

/** Below those that Services, relays and the kernel itself take. */
function nextPort(): number {
  lastPort = lastPort === 29_999 ? 20_000 : lastPort + 1;
  return lastPort;
}

/**
 * Ports come in their order, so that none comes again for minutes: IPVS remembers connections for so long, and cannot
 * distinguish two that lead from one port to one endpoint, by whatever Services they went.
 */
function bindToNextPort(fd: number, address: Address): void {
  for (;;) {
    try {
      bind(fd, { address, port: nextPort() });
      return;
    } catch (error) {
      if ((error as SystemError).code !== "EADDRINUSE") throw error;
    }
  }
}

function association(port: number): Exchange {
  const own = nextPort();
  return {
    first: sctpInit(own, port),
    sourcePort: own,
    answer: (packet) => sctpText(packet, own),
    owns: (packet) => packet.length >= 2 && packet.readUInt16BE(0) === own,
  };
}

const echoed = JSON.stringify({ endpoint: "", saw: { address: "", port: 0 } } satisfies Greeting);

function echo(domain: number): Exchange {
  const [request, reply] = domain === AF_INET ? [8, 0] : [128, 129];
  const id = nextPort();
  const owns = (packet: Buffer): boolean => packet.length >= 6 && packet.readUInt16BE(4) === id;
  return {
    first: icmpEcho(request, id),
    sourcePort: null,
    answer: (packet) => (packet[0] === reply && owns(packet) ? echoed : null),
    owns,
  };
}

function attempt(
  { netns, poller, source }: Sender,
  to: Endpoint,
  domain: number,
  type: number,
  protocol: number,
  exchange: Exchange,
  timeoutMs: number,
): Promise<SendResult> {
  const fd = netns.inside(() => socket(domain, type, protocol));
  return new Promise((resolve) => {
    let secondCheck: NodeJS.Timeout | undefined;
    const settle = (result: SendResult): void => {
      stopWaiting();
      // The number of a closed file is soon another file's.
      clearTimeout(secondCheck);
      poller.forget(fd);
      close(fd);
      resolve(result);
    };
    const stopWaiting = poller.afterQuiet(timeoutMs, () =>
      settle({ kind: "silence", client: clientName(fd, exchange) }),
    );
    const check = (): void => {
      const result = readReply(fd, domain, type, exchange);
      if (result !== null) settle(result);
    };
    noteIcmpErrors(fd, domain);
    if (type !== SOCK_RAW) bindToNextPort(fd, source ?? (domain === AF_INET ? "0.0.0.0" : "::"));
    else if (source !== null) bind(fd, { address: source, port: 0 });
    const refused = connect(fd, { address: to.address, port: type === SOCK_RAW ? 0 : to.port });
    if (refused !== "" && refused !== "EINPROGRESS") return settle(failure(fd, exchange, refused));
    const unsent = exchange.first === null ? "" : send(fd, exchange.first);
    // A packet refused or dropped on its way out fails with EPERM; only the former also brings an ICMP error.
    if (unsent !== "" && unsent !== "EPERM") return settle(failure(fd, exchange, unsent));
    poller.watch(fd, POLLIN, check);
    if (unsent === "EPERM") secondCheck = setTimeout(check, 100).unref();
  });
}

function readReply(fd: number, domain: number, type: number, exchange: Exchange): SendResult | null {
  const error = ownIcmpError(fd, exchange);
  if (error !== null) return { kind: "icmp", error };
  try {
    for (let message = receive(fd); message !== null; message = receive(fd)) {
      const raw = type === SOCK_RAW && domain !== AF_INET6;
      const result = answered(fd, raw ? withoutIPv4Header(message.data) : message.data, exchange);
      if (result !== null) return result;
    }
    return null;
  } catch (failed) {
    // A raw socket also receives errors of other sockets; its own came as an ICMP error above.
    return type === SOCK_RAW ? null : failure(fd, exchange, (failed as SystemError).code);
  }
}

function answered(fd: number, data: Buffer, exchange: Exchange): SendResult | null {
  const text = exchange.answer(data);
  if (text === null) return null;
  const greeting = parseGreeting(text);
  if (greeting === null) return { kind: "errno", errno: "EOF" };
  return { kind: "answered", ...greeting, client: clientName(fd, exchange) };
}

function clientName(fd: number, exchange: Exchange): Endpoint {
  const { address, port } = localName(fd);
  return { address, port: exchange.sourcePort ?? port };
}

function failure(fd: number, exchange: Exchange, errno: string): SendResult {
  const error = ownIcmpError(fd, exchange);
  return error === null ? { kind: "errno", errno: errno || pendingError(fd) } : { kind: "icmp", error };
}

function ownIcmpError(fd: number, exchange: Exchange): IcmpError | null {
  for (let error = icmpError(fd); error !== null; error = icmpError(fd)) {
    if (exchange.owns(error.packet)) return error;
  }
  return null;
}

/** A result as short text, for messages. */
export function resultText(result: SendResult): string {
  switch (result.kind) {
    case "answered":
      return `${result.endpoint} saw ${joinHostPort(result.saw.address, result.saw.port)}`;
    case "icmp":
      return `ICMP ${result.error.type}/${result.error.code} from ${result.error.from}`;
    case "errno":
      return result.errno;
    case "silence":
      return "silence";
  }
}
