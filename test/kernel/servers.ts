// The programs inside the pods: a client receives the endpoint it reached and the source address that the server saw.
import { type Address, joinHostPort } from "../../src/model/address.ts";
import {
  AF_INET,
  accept,
  bind,
  close,
  domainOf,
  type Endpoint,
  IPPROTO,
  listen,
  type Message,
  POLLIN,
  receive,
  SOCK_DGRAM,
  SOCK_RAW,
  SOCK_STREAM,
  send,
  sendTo,
  setOption,
  socket,
} from "./libc.ts";
import type { Namespace } from "./netns.ts";
import { sctpAnswer, withoutIPv4Header } from "./packets.ts";
import type { Poller } from "./poller.ts";

/** What a server sends to its client. */
export type Greeting = { readonly endpoint: string; readonly saw: Endpoint };

export function parseGreeting(text: string): Greeting | null {
  try {
    return JSON.parse(text) as Greeting;
  } catch {
    return null;
  }
}

/** Answers each TCP connection with a greeting, then echoes until the client ends. */
export function serveTcp(poller: Poller, netns: Namespace, at: Endpoint): void {
  const fd = boundSocket(netns, SOCK_STREAM, at);
  listen(fd);
  poller.watch(fd, POLLIN, () => {
    for (let client = accept(fd); client !== null; client = accept(fd))
      welcome(poller, client.fd, greeting(at, client.from));
  });
}

/** Answers each datagram with a greeting. */
export function serveUdp(poller: Poller, netns: Namespace, at: Endpoint): void {
  const fd = boundSocket(netns, SOCK_DGRAM, at);
  poller.watch(fd, POLLIN, () => {
    for (const message of waiting(fd)) sendTo(fd, Buffer.from(greeting(at, message.from)), message.from);
  });
}

/** Answers the first packet of each SCTP association, on every port of one address. */
export function serveSctp(poller: Poller, netns: Namespace, address: Address): void {
  const domain = domainOf(address);
  const fd = netns.inside(() => socket(domain, SOCK_RAW, IPPROTO.sctp));
  bind(fd, { address, port: 0 });
  poller.watch(fd, POLLIN, () => {
    for (const message of waiting(fd)) {
      const packet = domain === AF_INET ? withoutIPv4Header(message.data) : message.data;
      const [port, clientPort] = [packet.readUInt16BE(2), packet.readUInt16BE(0)];
      const from = { address: message.from.address, port: clientPort };
      const answer = sctpAnswer(packet, greeting({ address, port }, from));
      if (answer !== null) sendTo(fd, answer, { address: from.address, port: 0 });
    }
  });
}

/** All messages that are there; that an earlier answer did not arrive is no concern of a server. */
function* waiting(fd: number): Generator<Message> {
  for (;;) {
    const message = receive(fd);
    if (message === null) return;
    yield message;
  }
}

function greeting(at: Endpoint, saw: Endpoint): string {
  return JSON.stringify({ endpoint: joinHostPort(at.address, at.port), saw } satisfies Greeting);
}

function boundSocket(netns: Namespace, type: number, at: Endpoint): number {
  const fd = netns.inside(() => socket(domainOf(at.address), type, 0));
  const [SOL_SOCKET, SO_REUSEADDR] = [1, 2];
  setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  bind(fd, at);
  return fd;
}

function welcome(poller: Poller, fd: number, text: string): void {
  const end = (): void => {
    poller.forget(fd);
    close(fd);
  };
  const echo = (): void => {
    const message = receive(fd);
    if (message !== null && (message.data.length === 0 || send(fd, message.data) !== "")) end();
  };
  poller.watch(fd, POLLIN, () => {
    try {
      echo();
    } catch {
      end(); // the client is gone
    }
  });
  send(fd, Buffer.from(text));
}
