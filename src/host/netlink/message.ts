// Netlink messages: the header around every request and reply, and the kernel's acknowledgements with their explanations.
import {
  attributeEnd,
  attributes,
  hostU16,
  hostU32,
  nextAttribute,
  optional,
  text,
  u32,
} from "./attributes.ts";
import { littleEndian } from "./bytes.ts";
import type { Writer } from "./writer.ts";

export const flag = {
  request: 0x1,
  acknowledge: 0x4,
  /** The kernel sends what was changed to this socket, too. */
  echo: 0x8,
  dump: 0x300,
  replace: 0x100,
  exclusive: 0x200,
  create: 0x400,
  append: 0x800,
} as const;

export const messageType = { error: 2, done: 3, overrun: 4 } as const;

export const headerLength = 16;

const dumpInterrupted = 0x10;
const capped = 0x100;
const hasDetails = 0x200;

/** A received message: its header, and where its payload lies in the buffer. */
export type Message = {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
  readonly portId: number;
  readonly start: number;
  readonly end: number;
};

/** The kernel's response to one message: errno 0 is an acknowledgement. */
export type Answer = {
  readonly sequence: number;
  readonly errno: number;
  /** The kernel's explanation; empty when it has none. */
  readonly text: string;
  /** The offset of the offending attribute in our message; null when the kernel does not report it. */
  readonly offset: number | null;
};

/** Opens a message; pass the result to `endMessage`. */
export function beginMessage(out: Writer, type: number, flags: number, sequence: number): number {
  const at = out.length;
  out.u32(0);
  out.u16(type);
  out.u16(flags);
  out.u32(sequence);
  out.u32(0);
  return at;
}

export function endMessage(out: Writer, at: number): void {
  out.patchU32(at, out.length - at);
}

/** Sets a flag on a message that was already written. */
export function addFlag(out: Writer, at: number, flags: number): void {
  const written = Buffer.from(out.bytes().buffer, at + 6, 2);
  out.patchU16(at + 6, hostU16(written, 0) | flags);
}

export function* messagesIn(buffer: Buffer, length: number): Generator<Message> {
  for (let at = 0; at + headerLength <= length; ) {
    const size = hostU32(buffer, at);
    if (size < headerLength || at + size > length) return;
    yield {
      type: hostU16(buffer, at + 4),
      flags: hostU16(buffer, at + 6),
      sequence: hostU32(buffer, at + 8),
      portId: hostU32(buffer, at + 12),
      start: at + headerLength,
      end: at + size,
    };
    at += (size + 3) & ~3;
  }
}

export function isInterrupted(message: Message): boolean {
  return (message.flags & dumpInterrupted) !== 0;
}

/** Reads an error, an acknowledgement, or the end of a dump. */
export function readAnswer(buffer: Buffer, message: Message): Answer {
  const { sequence, start, end } = message;
  const code = end - start >= 4 ? hostI32(buffer, start) : 0;
  const details = detailsOf(buffer, message);
  return { sequence, errno: Math.abs(code), text: details.message ?? "", offset: details.offset ?? null };
}

const answerDetails = attributes({ message: optional(1, text), offset: optional(2, u32) });

function detailsOf(
  buffer: Buffer,
  { type, flags, start, end }: Message,
): { message?: string; offset?: number } {
  if ((flags & hasDetails) === 0) return {};
  if (type === messageType.done) return answerDetails.read(buffer, start + 4, end) ?? {};
  const echoed = flags & capped ? headerLength : (hostU32(buffer, start + 4) + 3) & ~3;
  return answerDetails.read(buffer, start + 4 + echoed, end) ?? {};
}

function hostI32(from: Buffer, at: number): number {
  return littleEndian ? from.readInt32LE(at) : from.readInt32BE(at);
}

/** Which item of a list of attributes an offset points into; -1 if into none. */
export function itemAt(buffer: Buffer, start: number, end: number, offset: number): number {
  let index = 0;
  for (let at = start; at + 4 <= end; at = nextAttribute(buffer, at), index++) {
    if (offset >= at && offset < attributeEnd(buffer, at)) return index;
  }
  return -1;
}
