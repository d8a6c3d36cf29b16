// Named packet counters (nfacct) over netlink: made where the kernel has them, read for metrics.
import { HostError } from "../error.ts";
import { attributes, field, optional, text, u64be } from "../netlink/attributes.ts";
import { endMessage, flag, type Message } from "../netlink/message.ts";
import { beginNetfilter, netfilterHeaderLength } from "../netlink/netfilter.ts";
import { type Place, sendRequest, withSocket } from "../netlink/socket.ts";
import { Writer } from "../netlink/writer.ts";

const subsystem = 7;
const NEW = (subsystem << 8) | 0;
const GET = (subsystem << 8) | 1;

const counter = attributes({ name: field(1, text), packets: optional(2, u64be) });

/** Makes sure that a counter exists; false: this kernel has none, or does not let us. */
export async function ensureCounter(name: string, place: Place = {}): Promise<boolean> {
  try {
    if ((await readCounter(name, place)) !== null) return true;
    await withSocket("netfilter", place, (socket) =>
      sendRequest(socket, `create counter ${name}`, create(name)),
    );
    return true;
  } catch (error) {
    // Another process created it first.
    if (error instanceof HostError) return error.errno === "EEXIST" || error.errno === "EBUSY";
    throw error;
  }
}

/** Packets counted so far; null: there is no such counter. */
export async function readCounter(name: string, place: Place = {}): Promise<bigint | null> {
  let packets: bigint | null = null;
  const visit = (buffer: Buffer, { type, start, end }: Message) => {
    if (type >> 8 !== subsystem) return;
    packets = counter.read(buffer, start + netfilterHeaderLength, end)?.packets ?? 0n;
  };
  try {
    await withSocket("netfilter", place, (socket) =>
      sendRequest(socket, `read counter ${name}`, message(GET, 0, name), undefined, visit),
    );
    return packets;
  } catch (error) {
    if (error instanceof HostError && error.errno === "ENOENT") return null;
    throw error;
  }
}

function create(name: string): Uint8Array {
  return message(NEW, flag.create | flag.exclusive, name);
}

function message(type: number, flags: number, name: string): Uint8Array {
  const out = new Writer();
  const at = beginNetfilter(out, type, flag.request | flag.acknowledge | flags, 1, null);
  counter.write(out, { name });
  endMessage(out, at);
  return out.bytes();
}
