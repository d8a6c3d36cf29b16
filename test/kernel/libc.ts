// The system calls that Node.js does not offer: namespaces, raw sockets, and the queue of ICMP errors of a socket.
import { constants } from "node:os";
import koffi from "koffi";
import { type Address, addressBytes, familyOf, formatAddress } from "../../src/model/address.ts";

const libc = koffi.load("libc.so.6");
koffi.struct("iovec", { base: "void *", length: "size_t" });
koffi.struct("msghdr", {
  name: "void *",
  nameLength: "uint32",
  parts: "iovec *",
  partCount: "size_t",
  control: "void *",
  controlLength: "size_t",
  flags: "int",
});

const calls = {
  setns: libc.func("int setns(int, int)"),
  socket: libc.func("int socket(int, int, int)"),
  bind: libc.func("int bind(int, void *, uint32)"),
  listen: libc.func("int listen(int, int)"),
  accept4: libc.func("int accept4(int, _Out_ void *, void *, int)"),
  connect: libc.func("int connect(int, void *, uint32)"),
  getsockname: libc.func("int getsockname(int, _Out_ void *, void *)"),
  getsockopt: libc.func("int getsockopt(int, int, int, _Out_ void *, void *)"),
  setsockopt: libc.func("int setsockopt(int, int, int, void *, uint32)"),
  send: libc.func("int64 send(int, void *, size_t, int)"),
  sendto: libc.func("int64 sendto(int, void *, size_t, int, void *, uint32)"),
  recvmsg: libc.func("int64 recvmsg(int, _Inout_ msghdr *, int)"),
  poll: libc.func("int poll(_Inout_ void *, uint64, int)"),
  eventfd: libc.func("int eventfd(uint32, int)"),
  close: libc.func("int close(int)"),
};

export const AF_INET = 2;
export const AF_INET6 = 10;
export const AF_PACKET = 17;
export const SOCK_STREAM = 1;
export const SOCK_DGRAM = 2;
export const SOCK_RAW = 3;
export const POLLIN = 1;
export const IPPROTO = { icmp: 1, tcp: 6, udp: 17, icmpv6: 58, sctp: 132 } as const;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const CLONE_NEWNET = 0x40000000;
const MSG_DONTWAIT = 0x40;
const MSG_ERRQUEUE = 0x2000;
const MSG_NOSIGNAL = 0x4000;

/** A system call that failed, with the name of its errno. */
export class SystemError extends Error {
  readonly code: string;
  constructor(call: string, code: string) {
    super(`Cannot ${call}: ${code}`);
    this.code = code;
  }
}

/** Empty for no error. */
function errnoName(errno: number): string {
  return errno === 0 ? "" : (errnoNames.get(errno) ?? `errno ${errno}`);
}

// The first name of a number is the one in use: EAGAIN, not EWOULDBLOCK.
const errnoNames = new Map(
  Object.entries(constants.errno)
    .map(([name, errno]) => [errno, name] as const)
    .reverse(),
);

export type Endpoint = { readonly address: Address; readonly port: number };

/** One message, with the destination it was sent to where the socket reports that. */
export type Message = {
  readonly data: Buffer;
  readonly from: Endpoint;
  readonly control: readonly Control[];
};

type Control = { readonly level: number; readonly type: number; readonly data: Buffer };

/** An entry of a socket's error queue: the ICMP error, and its sender. */
export type IcmpError = {
  readonly type: number;
  readonly code: number;
  readonly from: Address;
  /** The start of the packet that it is about, without IP header; of a stream or datagram only its payload. */
  readonly packet: Buffer;
};

/** Moves this thread into the network namespace of an open file. */
export function setns(namespaceFd: number): void {
  checked("enter a network namespace", calls.setns(namespaceFd, CLONE_NEWNET));
}

/** A non-blocking socket that child processes do not inherit. */
export function socket(domain: number, type: number, protocol: number): number {
  return checked("open a socket", calls.socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol));
}

export function domainOf(address: Address): number {
  return familyOf(address) === "ipv4" ? AF_INET : AF_INET6;
}

export function bind(fd: number, to: Endpoint): void {
  const name = encodeName(to);
  checked(`bind ${to.address} port ${to.port}`, calls.bind(fd, name, name.length));
}

export function listen(fd: number): void {
  checked("listen", calls.listen(fd, 4096));
}

/** null: no connection is waiting. */
export function accept(fd: number): { readonly fd: number; readonly from: Endpoint } | null {
  const name = Buffer.alloc(28);
  const accepted: number = calls.accept4(fd, name, uint32(28), SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (accepted >= 0) return { fd: accepted, from: decodeName(name) };
  return refused("accept", ["EAGAIN", "ECONNABORTED"], null);
}

/** The errno of a connection that fails immediately; empty when it is under way. */
export function connect(fd: number, to: Endpoint): string {
  const name = encodeName(to);
  return calls.connect(fd, name, name.length) === 0 ? "" : lastErrno();
}

export function localName(fd: number): Endpoint {
  const name = Buffer.alloc(28);
  checked("read a socket's address", calls.getsockname(fd, name, uint32(28)));
  return decodeName(name);
}

/** The pending error of a socket, which reading clears; empty when there is none. */
export function pendingError(fd: number): string {
  const value = Buffer.alloc(4);
  const SOL_SOCKET = 1;
  const SO_ERROR = 4;
  checked("read a socket's error", calls.getsockopt(fd, SOL_SOCKET, SO_ERROR, value, uint32(4)));
  return errnoName(value.readInt32LE());
}

export function setOption(fd: number, level: number, option: number, value: number | Buffer): void {
  const bytes = typeof value === "number" ? uint32(value) : value;
  checked(`set socket option ${level}/${option}`, calls.setsockopt(fd, level, option, bytes, bytes.length));
}

/** The errno of a message that was not accepted; empty when it was. */
export function send(fd: number, data: Uint8Array): string {
  return calls.send(fd, data, data.length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? lastErrno() : "";
}

export function sendTo(fd: number, data: Uint8Array, to: Endpoint | Buffer): string {
  const name = Buffer.isBuffer(to) ? to : encodeName(to);
  const sent: number = calls.sendto(fd, data, data.length, MSG_DONTWAIT | MSG_NOSIGNAL, name, name.length);
  return sent < 0 ? lastErrno() : "";
}

/** null: nothing there yet. A failed socket throws; the end of a stream is an empty message. */
export function receive(fd: number): Message | null {
  const received = receiveFrom(fd, 0);
  if (typeof received !== "string") return received;
  if (received === "EAGAIN") return null;
  throw new SystemError("receive", received);
}

/** The next ICMP error that the kernel noted for this socket; needs `noteIcmpErrors`. */
export function icmpError(fd: number): IcmpError | null {
  const received = receiveFrom(fd, MSG_ERRQUEUE);
  if (typeof received === "string") return null;
  const note = received.control.find(({ level, type }) => type === (level === 0 ? 11 : 25));
  const SO_EE_ORIGIN_LOCAL = 1;
  if (note === undefined || note.data[4]! <= SO_EE_ORIGIN_LOCAL) return icmpError(fd);
  const from = decodeName(note.data.subarray(16)).address;
  return { type: note.data[5]!, code: note.data[6]!, from, packet: received.data };
}

/** Asks the kernel to keep ICMP errors with type, code and sender (IP_RECVERR, IPV6_RECVERR). */
export function noteIcmpErrors(fd: number, domain: number): void {
  if (domain === AF_INET) setOption(fd, 0, 11, 1);
  else setOption(fd, 41, 25, 1);
}

/** Waits, off the main thread, for events on the given files; gives the events of each. */
export async function poll(
  wanted: readonly (readonly [number, number])[],
  waitMs: number,
): Promise<number[]> {
  const table = Buffer.alloc(wanted.length * 8);
  for (const [i, [fd, events]] of wanted.entries()) {
    table.writeInt32LE(fd, i * 8);
    table.writeInt16LE(events, i * 8 + 4);
  }
  await new Promise<void>((resolve, reject) => {
    calls.poll.async(table, wanted.length, waitMs, (error: Error | null) =>
      error ? reject(error) : resolve(),
    );
  });
  return wanted.map((_, i) => table.readInt16LE(i * 8 + 6));
}

/** A file that becomes readable when `send`-like code calls `wake`. */
export function eventFd(): number {
  return checked("open an event file", calls.eventfd(0, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

export function close(fd: number): void {
  calls.close(fd);
}

/** Where every message is received; it is copied from there, since most are short. */
const [name, data, control] = [Buffer.alloc(28), Buffer.alloc(65536), Buffer.alloc(512)];

function receiveFrom(fd: number, flags: number): Message | string {
  const header = {
    name,
    nameLength: name.length,
    parts: [{ base: data, length: data.length }],
    partCount: 1,
    control,
    controlLength: control.length,
    flags: 0,
  };
  const length = Number(calls.recvmsg(fd, header, flags | MSG_DONTWAIT));
  if (length < 0) return lastErrno();
  const from = header.nameLength === 0 ? { address: "", port: 0 } : decodeName(name);
  return {
    data: Buffer.from(data.subarray(0, length)),
    from,
    control: controls(Buffer.from(control.subarray(0, header.controlLength))),
  };
}

function controls(bytes: Buffer): Control[] {
  const found: Control[] = [];
  for (let at = 0; at + 16 <= bytes.length; ) {
    const length = Number(bytes.readBigUInt64LE(at));
    if (length < 16) break;
    found.push({
      level: bytes.readInt32LE(at + 8),
      type: bytes.readInt32LE(at + 12),
      data: bytes.subarray(at + 16, at + length),
    });
    at += (length + 7) & ~7;
  }
  return found;
}

function encodeName({ address, port }: Endpoint): Buffer {
  const bytes = addressBytes(address)!;
  const name = Buffer.alloc(bytes.length === 4 ? 16 : 28);
  name.writeUInt16LE(domainOf(address), 0);
  name.writeUInt16BE(port, 2);
  name.set(bytes, bytes.length === 4 ? 4 : 8);
  return name;
}

function decodeName(name: Buffer): Endpoint {
  const port = name.readUInt16BE(2);
  switch (name.readUInt16LE(0)) {
    case AF_INET:
      return { address: formatAddress(name.subarray(4, 8)), port };
    case AF_INET6:
      return { address: formatAddress(name.subarray(8, 24)), port };
    default:
      return { address: "", port: 0 };
  }
}

function checked(what: string, result: number): number {
  return result >= 0 ? result : refused(what, [], result);
}

function refused<T>(what: string, tolerated: readonly string[], otherwise: T): T {
  const code = lastErrno();
  if (tolerated.includes(code)) return otherwise;
  throw new SystemError(what, code);
}

function lastErrno(): string {
  return errnoName(koffi.errno());
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
