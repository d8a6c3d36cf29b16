// A TCP packet that connection tracking cannot make sense of, and whether it gets through.
import {
  AF_INET,
  bind,
  close,
  domainOf,
  type Endpoint,
  IPPROTO,
  POLLIN,
  receive,
  SOCK_RAW,
  sendTo,
  socket,
} from "./libc.ts";
import type { Namespace } from "./netns.ts";
import { senseless, withoutIPv4Header } from "./packets.ts";
import type { Poller } from "./poller.ts";

const timeoutMs = 500;

/** Sends the packet from one namespace; true when it arrives in the other. */
export function injectInvalid(
  poller: Poller,
  from: Namespace,
  target: Namespace,
  to: Endpoint,
): Promise<boolean> {
  const domain = domainOf(to.address);
  const sourcePort = 20_000 + Math.floor(Math.random() * 40_000);
  const ear = target.inside(() => socket(domain, SOCK_RAW, IPPROTO.tcp));
  bind(ear, { address: to.address, port: 0 });
  return new Promise((resolve) => {
    const settle = (arrived: boolean): void => {
      stopWaiting();
      poller.forget(ear);
      close(ear);
      resolve(arrived);
    };
    const stopWaiting = poller.afterQuiet(timeoutMs, () => settle(false));
    poller.watch(ear, POLLIN, () => {
      for (let message = receive(ear); message !== null; message = receive(ear)) {
        const packet = domain === AF_INET ? withoutIPv4Header(message.data) : message.data;
        if (packet.readUInt16BE(0) === sourcePort) return settle(true);
      }
    });
    const mouth = from.inside(() => socket(domain, SOCK_RAW, IPPROTO.tcp));
    sendTo(mouth, senseless(sourcePort, to.port), { address: to.address, port: 0 });
    close(mouth);
  });
}
