// A frame that no honest neighbour sends: a connection to a loopback address, straight to the node's MAC address.
import { type Address, formatAddress } from "../../src/model/address.ts";
import { AF_PACKET, close, type Endpoint, POLLIN, receive, SOCK_RAW, sendTo, socket } from "./libc.ts";
import { tcpSynFrame } from "./packets.ts";
import type { Sender, SendResult } from "./send-packet.ts";
import { macs } from "./world.ts";

const ethernetIPv4 = 0x0800;

/** Sends the frame from the outside client and waits for anything that comes back. */
export function tryCraftedSyn(
  from: Sender & { readonly source: Address },
  to: Endpoint,
): Promise<SendResult> {
  const client = { address: from.source, port: 20_000 + Math.floor(Math.random() * 40_000) };
  const fd = from.netns.inside(() => socket(AF_PACKET, SOCK_RAW, swapped(ethernetIPv4)));
  return new Promise((resolve) => {
    const settle = (result: SendResult): void => {
      stopWaiting();
      from.poller.forget(fd);
      close(fd);
      resolve(result);
    };
    const stopWaiting = from.poller.afterQuiet(1000, () => settle({ kind: "silence", client }));
    from.poller.watch(fd, POLLIN, () => {
      for (let frame = receive(fd); frame !== null; frame = receive(fd)) {
        if (!isAnswer(frame.data, to, client)) continue;
        // A reset is the node's own; that a Service answered shows in the node's flows.
        const isReset = (frame.data[flagsAt]! & 4) !== 0;
        return settle(isReset ? { kind: "errno", errno: "ECONNREFUSED" } : { kind: "silence", client });
      }
    });
    // `eth0` is the second link of its namespace, after `lo`.
    sendTo(fd, tcpSynFrame(macs.host, macs.X, client, to), linkName(2));
  });
}

const [ethernet, ip] = [14, 20];
const flagsAt = ethernet + ip + 13;

function isAnswer(frame: Buffer, from: Endpoint, to: Endpoint): boolean {
  if (frame.length < ethernet + ip + 20) return false;
  const source = formatAddress(frame.subarray(ethernet + 12, ethernet + 16));
  return source === from.address && frame.readUInt16BE(ethernet + ip + 2) === to.port;
}

function linkName(index: number): Buffer {
  const name = Buffer.alloc(20);
  name.writeUInt16LE(AF_PACKET, 0);
  name.writeUInt16BE(ethernetIPv4, 2);
  name.writeInt32LE(index, 4);
  return name;
}

/** A 16-bit number in network order, as the third argument of `socket` requires it. */
function swapped(value: number): number {
  return ((value & 255) << 8) | (value >> 8);
}
