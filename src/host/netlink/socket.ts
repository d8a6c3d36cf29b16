// Netlink sockets: created, configured, and used for one request after the other.
import { closeSync, write } from "node:fs";
import { HostError } from "../error.ts";
import { littleEndian } from "./bytes.ts";
import { type Answer, type Message, messagesIn, messageType, readAnswer } from "./message.ts";
import { errnoName, type Native, native } from "./native.ts";

export type Protocol = "route" | "netfilter" | "generic";

/** Where to work: the path of a network namespace such as `/run/netns/pod`, or ours when absent. */
export type Place = { readonly netns?: string };

/** Called for each message; it must copy what it keeps, since the buffer is reused. */
export type Visit = (buffer: Buffer, message: Message) => void;

export const protocolNumber = { route: 0, netfilter: 12, generic: 16 } as const satisfies Record<
  Protocol,
  number
>;

const SOL_SOCKET = 1;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
export const SOL_NETLINK = 270;
const NETLINK_CAP_ACK = 10;
const NETLINK_EXT_ACK = 11;
const NETLINK_GET_STRICT_CHK = 12;

/** The kernel never fills more than 32 KiB of a dump at once; link dumps may need a little more. */
export const datagramSize = 128 * 1024;
const receiveBuffer = 4 * 1024 * 1024;

export type Answers = {
  readonly answers: readonly Answer[];
  /** False when the response did not fit the buffer. */
  readonly complete: boolean;
};

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

  /** Sends messages in one write and returns the kernel's acknowledgements. Other replies go to `visit`. */
  exchange(request: Uint8Array, signal?: AbortSignal, visit?: Visit): Promise<Answers> {
    if (this.#closing !== undefined) {
      return Promise.reject(new HostError("unavailable", "Cannot use a netlink socket: it is closed"));
    }
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

  async #exchange(request: Uint8Array, signal?: AbortSignal, visit?: Visit): Promise<Answers> {
    signal?.throwIfAborted();
    this.#makeRoom(request.length);
    await writeAll(this.#fd, request);
    return this.#answers(visit);
  }

  // The kernel processes a request during the write: the replies are queued when the write returns.
  #answers(visit: Visit | undefined): Answers {
    const answers: Answer[] = [];
    let complete = true;
    for (;;) {
      const length = this.#receive();
      if (length === 0) return { answers, complete };
      if (length > this.#buffer.length) {
        complete = false;
        continue;
      }
      for (const message of messagesIn(this.#buffer, length)) {
        if (message.type === messageType.error) answers.push(readAnswer(this.#buffer, message));
        else visit?.(this.#buffer, message);
      }
    }
  }

  // Answers that did not fit the receive buffer count like one that does not fit ours.
  #receive(): number {
    try {
      return this.#native.receive(this.#fd, this.#buffer);
    } catch (error) {
      if (error instanceof HostError && error.errno === "ENOBUFS") return Number.POSITIVE_INFINITY;
      throw error;
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

/** Sends one message that requires an acknowledgement; throws the kernel's error. */
export async function sendRequest(
  socket: NetlinkSocket,
  what: string,
  request: Uint8Array,
  signal?: AbortSignal,
  visit?: Visit,
): Promise<void> {
  const reply = await socket.exchange(request, signal, visit);
  const refusal = reply.answers.find(({ errno }) => errno !== 0);
  if (refusal !== undefined) throw refused(what, refusal);
  mustKnow(what, reply);
}

/** Throws when the kernel's answer was lost: what became of the request is not known then. */
export function mustKnow(what: string, { answers, complete }: Answers): void {
  if (answers.length > 0 && complete) return;
  throw new HostError("lost", `Cannot ${what}: the kernel's answer is lost`);
}

/** Opens a socket for one task. */
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

/** Options of every socket; kernels that lack one of these work without. */
export function configure(system: Native, fd: number): void {
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

/** Off the event loop: the kernel works while this waits. */
export function writeAll(fd: number, bytes: Uint8Array): Promise<void> {
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

export function int(value: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(4));
  view.setInt32(0, value, littleEndian);
  return new Uint8Array(view.buffer);
}
