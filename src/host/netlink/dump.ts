// Netlink dumps: streamed or whole. Each has a socket of its own, so that it can be dropped halfway.
import { closeSync, read } from "node:fs";
import { HostError } from "../error.ts";
import { isInterrupted, type Message, messagesIn, messageType, readAnswer } from "./message.ts";
import { native } from "./native.ts";
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

const restarts = 10;

/** Streams a dump; the buffer is overwritten by the next turn. At its end it throws if the kernel says it is inconsistent. */
export async function* dump(
  protocol: Protocol,
  what: string,
  request: Uint8Array,
  place: Place = {},
  signal?: AbortSignal,
): AsyncGenerator<Datagram> {
  signal?.throwIfAborted();
  const system = await native();
  const { fd } = system.open(protocolNumber[protocol], place.netns);
  try {
    configure(system, fd);
    await writeAll(fd, request);
    const buffer = Buffer.allocUnsafe(datagramSize);
    let interrupted = false;
    for (;;) {
      const length = await readSome(fd, buffer, what);
      for (const message of messagesIn(buffer, length)) {
        interrupted ||= isInterrupted(message);
        if (message.type !== messageType.done && message.type !== messageType.error) continue;
        const answer = readAnswer(buffer, message);
        if (answer.errno !== 0) throw refused(what, answer);
        yield { buffer, length };
        if (interrupted)
          throw new HostError("interrupted", `Cannot ${what}: it changed meanwhile`, { errno: "EINTR" });
        return;
      }
      yield { buffer, length };
      signal?.throwIfAborted();
    }
  } finally {
    closeSync(fd);
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

// Between the start of a dump and its end there is always something to read, so this never waits for the kernel.
function readSome(fd: number, buffer: Buffer, what: string): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, 0, buffer.length, null, (error, length) => {
      if (error === null && length > 0 && length < buffer.length) resolve(length);
      else reject(notRead(error, what));
    });
  });
}

function notRead(error: NodeJS.ErrnoException | null, what: string): HostError {
  const errno = error?.code ?? "";
  const why = errno === "" ? "the answer is too large" : errno;
  return new HostError("lost", `Cannot ${what}: ${why}`, { cause: error ?? undefined, errno });
}
