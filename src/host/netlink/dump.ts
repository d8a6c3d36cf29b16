// Netlink dumps: streamed or whole. Each has its own socket, so that it can be abandoned halfway; or one that stays open.
import { closeSync } from "node:fs";
import { HostError } from "../error.ts";
import type { Datagrams } from "./datagrams.ts";
import { isInterrupted, type Message, messagesIn, messageType, readAnswer } from "./message.ts";
import { type Native, native } from "./native.ts";
import {
  configure,
  datagramSize,
  type Place,
  type Protocol,
  protocolNumber,
  refused,
  writeAll,
} from "./socket.ts";

export type Datagram = { readonly buffer: Buffer; readonly length: number };

/** Attempts to read a dump that the kernel interrupts. */
const restarts = 10;
/** Most dumps have no more datagrams than this; they are received one by one in the event loop. */
const few = 2;
/** Datagrams of a longer dump that one call receives, on another thread. */
const many = 64;

/** Streams a dump; buffers are reused. Throws at the end if the kernel marked it as inconsistent. */
export async function* dump(
  protocol: Protocol,
  what: string,
  request: Uint8Array,
  place: Place = {},
  signal?: AbortSignal,
): AsyncGenerator<Datagram> {
  signal?.throwIfAborted();
  const socket = await openDumpSocket(protocol, place);
  try {
    yield* dumpOn(socket, what, request, few, signal);
  } finally {
    socket.close();
  }
}

/** For one dump after the other. Close it after one that was not read to its end. */
export type DumpSocket = {
  readonly system: Native;
  readonly fd: number;
  /** Bytes of the longest datagram in a dump. */
  readonly longest: number;
  close(): void;
};

/** The kernel fills at most 32 KiB of a datagram, unless one message needs more, as that of a network interface may. */
const longest: Readonly<Record<Protocol, number>> = {
  netfilter: 32 * 1024,
  generic: datagramSize,
  route: datagramSize,
};

export async function openDumpSocket(protocol: Protocol, place: Place = {}): Promise<DumpSocket> {
  const system = await native();
  const { fd } = system.open(protocolNumber[protocol], place.netns);
  configure(system, fd);
  return { system, fd, longest: longest[protocol], close: () => closeSync(fd) };
}

/** Streams a dump; the first datagrams, `inline` of them, are received in the event loop. */
export async function* dumpOn(
  socket: DumpSocket,
  what: string,
  request: Uint8Array,
  inline: number,
  signal?: AbortSignal,
): AsyncGenerator<Datagram> {
  await writeAll(socket.fd, request);
  let interrupted = false;
  for await (const datagram of datagramsFrom(socket, what, inline)) {
    const { buffer, length } = datagram;
    for (const message of messagesIn(buffer, length)) {
      interrupted ||= isInterrupted(message);
      if (message.type !== messageType.done && message.type !== messageType.error) continue;
      const answer = readAnswer(buffer, message);
      if (answer.errno !== 0) throw refused(what, answer);
      yield datagram;
      if (interrupted)
        throw new HostError("interrupted", `Cannot ${what}: it changed meanwhile`, { errno: "EINTR" });
      return;
    }
    yield datagram;
    signal?.throwIfAborted();
  }
}

/** A whole dump, started again while it is interrupted. */
export async function collect<T>(
  protocol: Protocol,
  what: string,
  request: Uint8Array,
  decode: (buffer: Buffer, message: Message) => T | undefined,
  place: Place = {},
  signal?: AbortSignal,
): Promise<T[]> {
  for (let attempt = 1; ; attempt++) {
    const found: T[] = [];
    try {
      for await (const { buffer, length } of dump(protocol, what, request, place, signal)) {
        for (const message of messagesIn(buffer, length)) {
          if (message.type <= messageType.overrun) continue;
          const item = decode(buffer, message);
          if (item !== undefined) found.push(item);
        }
      }
      return found;
    } catch (error) {
      const again = error instanceof HostError && error.errno === "EINTR" && attempt < restarts;
      if (!again) throw error;
    }
  }
}

/** Buffers that no dump uses now, for reuse: for single datagrams, and for `many`, by the size of a datagram. */
const spare = { few: [] as Buffer[], many: new Map<number, Datagrams[]>() };
/** Kept per size. More are in use only while a whole table is read, several sets at a time. */
const mostSpare = 2;

function takeRoom(system: Native, size: number): Datagrams {
  return spare.many.get(size)?.pop() ?? system.datagrams(many, size);
}

function returnRoom(room: Datagrams, size: number): void {
  const rooms = spare.many.get(size) ?? [];
  spare.many.set(size, rooms);
  if (rooms.length < mostSpare) rooms.push(room);
}

/** Never ends: the caller detects the last datagram. Until then the kernel always has one to read, so none means a failure. */
async function* datagramsFrom(
  { system, fd, longest: size }: DumpSocket,
  what: string,
  inline: number,
): AsyncGenerator<Datagram> {
  const broken = () => new HostError("lost", `Cannot ${what}: the kernel broke off`);
  const tooLarge = () => new HostError("lost", `Cannot ${what}: the answer is too large`);
  const buffer = spare.few.pop() ?? Buffer.allocUnsafeSlow(datagramSize);
  try {
    for (let i = 0; i < inline; i++) {
      const length = system.receive(fd, buffer);
      if (length === 0) throw broken();
      if (length > buffer.length) throw tooLarge();
      yield { buffer, length };
    }
  } finally {
    spare.few.push(buffer);
  }
  const room = takeRoom(system, size);
  try {
    for (;;) {
      const received = await system.receiveMany(fd, room);
      if (received === 0) throw broken();
      for (let i = 0; i < received; i++) {
        const datagram = room.at(i);
        if (datagram === null) throw tooLarge();
        yield datagram;
      }
    }
  } finally {
    returnRoom(room, size);
  }
}
