// A connection or datagram flow that stays open while the cluster changes around it.
import {
  bind,
  close,
  connect,
  domainOf,
  type Endpoint,
  icmpError,
  noteIcmpErrors,
  POLLIN,
  receive,
  SOCK_DGRAM,
  SOCK_STREAM,
  send,
  socket,
} from "./libc.ts";
import type { Sender } from "./send-packet.ts";
import { parseGreeting } from "./servers.ts";

/** The result of one exchange: the endpoint that answered, `reject`, or `silence`. */
export type Reply = string;

export type Conversation = {
  /** Sends a line and waits for the answer. */
  talk(): Promise<Reply>;
  close(): void;
};

const timeoutMs = 1000;

/** TCP: one connection, kept. UDP: one socket, so that all datagrams belong to one flow. */
export function openConversation(from: Sender, protocol: "tcp" | "udp", to: Endpoint): Conversation {
  const { netns, poller, source } = from;
  const domain = domainOf(to.address);
  const fd = netns.inside(() => socket(domain, protocol === "tcp" ? SOCK_STREAM : SOCK_DGRAM, 0));
  noteIcmpErrors(fd, domain);
  if (source !== null) bind(fd, { address: source, port: 0 });
  let listener: (reply: Reply) => void = () => {};
  // The greeting comes once for a connection and with every datagram; what else a connection brings is our echo.
  let endpoint = "";
  connect(fd, to);
  poller.watch(fd, POLLIN, () => {
    if (icmpError(fd) !== null) return listener("reject");
    try {
      const message = receive(fd);
      if (message === null) return;
      endpoint = parseGreeting(String(message.data))?.endpoint ?? endpoint;
      listener(endpoint);
    } catch {
      listener("reject");
    }
  });
  const answer = (): Promise<Reply> =>
    new Promise((resolve) => {
      const stopWaiting = poller.afterQuiet(timeoutMs, () => resolve("silence"));
      listener = (reply) => {
        stopWaiting();
        resolve(reply);
      };
    });
  return {
    async talk() {
      // A new connection speaks first.
      const isNew = protocol === "tcp" && endpoint === "";
      const reply = answer();
      if (!isNew) send(fd, Buffer.from("hello"));
      return reply;
    },
    close() {
      poller.forget(fd);
      close(fd);
    },
  };
}
