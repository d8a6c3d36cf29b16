// Netlink multicast events, read in the event loop as they come.
import { closeSync } from "node:fs";
import { HostError } from "../error.ts";
import { messagesIn } from "./message.ts";
import { type Native, native } from "./native.ts";
import {
  configure,
  datagramSize,
  int,
  type Place,
  type Protocol,
  protocolNumber,
  SOL_NETLINK,
  type Visit,
} from "./socket.ts";
import { Writer } from "./writer.ts";

const NETLINK_ADD_MEMBERSHIP = 1;

export type Listener = {
  readonly visit: Visit;
  /** Some events were dropped: the listener's state is outdated. */
  readonly lost: () => void;
};

export type ListenOptions = Place & {
  /** Port ids of sockets: the kernel drops the events of their requests. */
  readonly ignore?: readonly number[];
  /** Everything but this type of message is dropped in the kernel. */
  readonly only?: number;
};

/** Follows multicast groups until the signal is aborted. Does not keep the process alive. */
export async function listen(
  protocol: Protocol,
  groups: readonly number[],
  listener: Listener,
  signal: AbortSignal,
  { netns, ignore = [], only }: ListenOptions = {},
): Promise<void> {
  signal.throwIfAborted();
  const system = await native();
  const { fd } = system.open(protocolNumber[protocol], netns);
  configure(system, fd);
  if (ignore.length > 0) system.attachFilter(fd, filterAgainst(ignore));
  if (only !== undefined) system.attachFilter(fd, filterFor(only));
  for (const group of groups) {
    if (system.setOption(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, int(group))) continue;
    closeSync(fd);
    throw new HostError(
      "unavailable",
      `Cannot listen to ${protocol} events: group ${group} cannot be joined`,
    );
  }
  const buffer = Buffer.allocUnsafe(datagramSize);
  const watch = system.watch(fd, () => receiveEvents(system, fd, buffer, listener));
  const stop = () => {
    watch.close();
    closeSync(fd);
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
}

function receiveEvents(system: Native, fd: number, buffer: Buffer, listener: Listener): void {
  for (;;) {
    let length: number;
    try {
      length = system.receive(fd, buffer);
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      listener.lost();
      continue;
    }
    if (length === 0) return;
    if (length > buffer.length) listener.lost();
    else for (const message of messagesIn(buffer, length)) listener.visit(buffer, message);
  }
}

// Classic BPF programs. They read the first message of a datagram, and load its fields as if they were in network order.
type Instruction = readonly [code: number, jumpTrue: number, jumpFalse: number, value: number];

const accept: Instruction = [0x06, 0, 0, 0xffffffff];
const drop: Instruction = [0x06, 0, 0, 0];

function filterAgainst(portIds: readonly number[]): Uint8Array {
  return program([
    [0x20, 0, 0, 12], // load the port id
    ...portIds.map((portId, i): Instruction => [0x15, portIds.length - i, 0, swapped(portId)]), // one of these: drop
    accept,
    drop,
  ]);
}

function filterFor(type: number): Uint8Array {
  return program([
    [0x28, 0, 0, 4], // load the type, half as long
    [0x15, 0, 1, swapped(type) >>> 16], // another one: drop
    accept,
    drop,
  ]);
}

function program(instructions: readonly Instruction[]): Uint8Array {
  const out = new Writer();
  for (const [code, jumpTrue, jumpFalse, value] of instructions) {
    out.u16(code);
    out.u8(jumpTrue);
    out.u8(jumpFalse);
    out.u32(value);
  }
  return out.bytes();
}

function swapped(value: number): number {
  const out = new Writer();
  out.u32(value);
  return Buffer.from(out.bytes()).readUInt32BE(0);
}
