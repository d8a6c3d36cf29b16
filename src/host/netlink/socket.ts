// Netlink sockets: requests with their answers, dumps, multicast events. A dump has a socket of its own, so that it can be dropped halfway.
import { closeSync, read, write } from "node:fs";
import { HostError } from "../error.ts";
import { littleEndian } from "./bytes.ts";
import { type Answer, isInterrupted, type Message, messagesIn, messageType, readAnswer } from "./message.ts";
import { errnoName, type Native, native } from "./native.ts";
import { Writer } from "./writer.ts";

export type Protocol = "route" | "netfilter" | "generic";

/** Where to work: the path of a network namespace such as `/run/netns/pod`, or ours when absent. */
export type Place = { readonly netns?: string };

/** Called for each message; what it wants to keep it must copy, since the buffer is used again. */
export type Visit = (buffer: Buffer, message: Message) => void;

export type Datagram = { readonly buffer: Buffer; readonly length: number };

const protocolNumber = { route: 0, netfilter: 12, generic: 16 } as const satisfies Record<Protocol, number>;

const SOL_SOCKET = 1;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const SOL_NETLINK = 270;
const NETLINK_ADD_MEMBERSHIP = 1;
const NETLINK_CAP_ACK = 10;
const NETLINK_EXT_ACK = 11;
const NETLINK_GET_STRICT_CHK = 12;

/** The kernel never fills more than 32 KiB of a dump at once; link dumps may ask for a little more. */
const datagramSize = 128 * 1024;
const receiveBuffer = 4 * 1024 * 1024;
const restarts = 10;

/** A socket for requests. They are answered one after the other. */
export class NetlinkSocket {
  readonly portId: number;
  readonly #native: Native;
  readonly #fd: number;
  readonly #buffer = Buffer.allocUnsafe(datagramSize);
  #sendBuffer = 0;
  #queue: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(native: Native, fd: number, portId: number) {
    this.#native = native;
    this.#fd = fd;
    this.portId = portId;
  }

  /** Sends messages in one write and gives every answer of the kernel. Replies that are no answers go to `visit`. */
  exchange(request: Uint8Array, signal?: AbortSignal, visit?: Visit): Promise<Answer[]> {
    const turn = this.#queue.then(() => this.#exchange(request, signal, visit));
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  /** Waits for what is under way, then closes. */
  close(): Promise<void> {
    this.#closing ??= this.#queue.then(() => closeSync(this.#fd));
    this.#queue = this.#closing;
    return this.#closing;
  }

  async #exchange(request: Uint8Array, signal?: AbortSignal, visit?: Visit): Promise<Answer[]> {
    signal?.throwIfAborted();
    if (this.#closing !== undefined)
      throw new HostError("unavailable", "Cannot use a netlink socket: it is closed");
    this.#makeRoom(request.length);
    await writeAll(this.#fd, request);
    return this.#answers(visit);
  }

  // The kernel works a request off while it is written: what it has to say is waiting when the write returns.
  #answers(visit: Visit | undefined): Answer[] {
    const answers: Answer[] = [];
    for (;;) {
      const length = this.#native.receive(this.#fd, this.#buffer);
      if (length === 0) return answers;
      if (length > this.#buffer.length) throw truncated(length);
      for (const message of messagesIn(this.#buffer, length)) {
        if (message.type === messageType.error) answers.push(readAnswer(this.#buffer, message));
        else visit?.(this.#buffer, message);
      }
    }
  }

  // A write larger than the send buffer is refused with EMSGSIZE.
  #makeRoom(length: number): void {
    if (length <= this.#sendBuffer) return;
    this.#sendBuffer = Math.max(length * 2, 256 * 1024);
    this.#native.setOption(this.#fd, SOL_SOCKET, SO_SNDBUFFORCE, int(this.#sendBuffer));
  }
}

export async function openSocket(protocol: Protocol, place: Place = {}): Promise<NetlinkSocket> {
  const system = await native();
  const { fd, portId } = system.open(protocolNumber[protocol], place.netns);
  configure(system, fd);
  return new NetlinkSocket(system, fd, portId);
}

/** Sends one message that wants an acknowledgement; throws what the kernel objects to. */
export async function ask(
  socket: NetlinkSocket,
  what: string,
  request: Uint8Array,
  signal?: AbortSignal,
  visit?: Visit,
): Promise<void> {
  const answers = await socket.exchange(request, signal, visit);
  const refusal = answers.find(({ errno }) => errno !== 0);
  if (refusal !== undefined) throw refused(what, refusal);
  if (answers.length === 0) throw new HostError("lost", `Cannot ${what}: the kernel did not answer`);
}

/** Does one thing with a socket of its own. */
export async function withSocket<T>(
  protocol: Protocol,
  place: Place,
  action: (socket: NetlinkSocket) => Promise<T>,
): Promise<T> {
  const socket = await openSocket(protocol, place);
  try {
    return await action(socket);
  } finally {
    await socket.close();
  }
}

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

export type Listener = {
  readonly visit: Visit;
  /** Some events were dropped: the listener no longer knows. */
  readonly lost: () => void;
};

export type ListenOptions = Place & {
  /** Drop, in the kernel, what comes of this socket's own requests, except messages of one type. */
  readonly quiet?: { readonly portId: number; readonly except: number };
};

/** Follows multicast groups until the signal is aborted. Does not keep the process alive. */
export async function listen(
  protocol: Protocol,
  groups: readonly number[],
  listener: Listener,
  signal: AbortSignal,
  { netns, quiet }: ListenOptions = {},
): Promise<void> {
  signal.throwIfAborted();
  const system = await native();
  const { fd } = system.open(protocolNumber[protocol], netns);
  configure(system, fd);
  if (quiet !== undefined) system.attachFilter(fd, quietFilter(quiet.portId, quiet.except));
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

// A classic BPF program. It sees the first message of a datagram, and loads its fields as if they were in network order.
function quietFilter(portId: number, except: number): Uint8Array {
  const instructions = [
    [0x20, 0, 0, 12], // load the port id
    [0x15, 0, 2, swapped(portId, 4)], // another's: accept
    [0x28, 0, 0, 4], // load the type
    [0x15, 0, 1, swapped(except, 2)], // not the exception: drop
    [0x06, 0, 0, 0xffffffff], // accept
    [0x06, 0, 0, 0], // drop
  ] as const;
  const out = new Writer();
  for (const [code, jumpTrue, jumpFalse, value] of instructions) {
    out.u16(code);
    out.u8(jumpTrue);
    out.u8(jumpFalse);
    out.u32(value);
  }
  return out.bytes();
}

function swapped(value: number, size: 2 | 4): number {
  const out = new Writer();
  if (size === 2) out.u16(value);
  else out.u32(value);
  return Buffer.from(out.bytes()).readUIntBE(0, size);
}

function configure(system: Native, fd: number): void {
  for (const option of [NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK]) {
    system.setOption(fd, SOL_NETLINK, option, int(1));
  }
  system.setOption(fd, SOL_SOCKET, SO_RCVBUFFORCE, int(receiveBuffer));
}

export function refused(what: string, { errno, text, offset }: Answer): HostError {
  const name = errnoName(errno);
  const why = text === "" ? name : `${text} (${name})`;
  const kind = name === "EINTR" || name === "ERESTART" ? "interrupted" : "refused";
  return new HostError(kind, `Cannot ${what}: ${why}`, {
    errno: name,
    text,
    ...(offset === null ? {} : { offset }),
  });
}

function truncated(length: number): HostError {
  return new HostError("lost", `Cannot read a netlink message: it has ${length} bytes`);
}

function writeAll(fd: number, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    write(fd, bytes, 0, bytes.length, null, (error) => {
      if (error === null) resolve();
      else reject(notWritten(error, bytes.length));
    });
  });
}

function notWritten(error: NodeJS.ErrnoException, length: number): HostError {
  const errno = error.code ?? "";
  return new HostError("refused", `Cannot send ${length} bytes to the kernel: ${errno}`, {
    cause: error,
    errno,
  });
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

function int(value: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(4));
  view.setInt32(0, value, littleEndian);
  return new Uint8Array(view.buffer);
}
