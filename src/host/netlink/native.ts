// The few system calls Node.js does not offer, through koffi.
import { closeSync, openSync } from "node:fs";
import { constants } from "node:os";
import { HostError } from "../error.ts";
import { littleEndian, unmovedBytes } from "./bytes.ts";
import { Datagrams } from "./datagrams.ts";

export type Watch = { close(): void };

export type Native = {
  /** A non-blocking netlink socket and its port id. */
  open(protocol: number, netns: string | undefined): { fd: number; portId: number };
  /** False when the kernel does not support the option or forbids it. */
  setOption(fd: number, level: number, name: number, value: Uint8Array): boolean;
  /** Attaches a classic BPF program; false when the kernel forbids it. */
  attachFilter(fd: number, program: Uint8Array): boolean;
  /** The next datagram's true length, 0 when none is waiting. Throws ENOBUFS when the kernel dropped some. */
  receive(fd: number, into: Uint8Array): number;
  /** Buffers for this many datagrams, each of at most this many bytes. */
  datagrams(count: number, size: number): Datagrams;
  /** Off the event loop: how many of the waiting datagrams were put there; 0 when there is none, or it cannot be read. */
  receiveMany(fd: number, into: Datagrams): Promise<number>;
  /** Calls back in the event loop whenever there is something to read; does not keep the process alive. */
  watch(fd: number, readable: () => void): Watch;
  /** A TCP socket that listens on 127.0.0.1, made before this returns: `net.Server` makes one for a host later, elsewhere. */
  listenOnLoopback(port: number): number;
  /** Gives memory that malloc keeps for later back to the kernel, where the C library can. */
  trimHeap(): void;
  /** Runs code in another network namespace. It must be synchronous: only this thread moves, and it moves back. */
  inside<T>(netns: string, action: () => T): T;
};

let loading: Promise<Native> | undefined;

/** Loads the native library once, when it is first needed: it takes 15 to 40 ms. */
export function native(): Promise<Native> {
  loading ??= load();
  return loading;
}

// Some numbers have two names, and some the kernel uses are not in Node's list.
const errnoNames = new Map<number, string>([
  ...Object.entries(constants.errno).map(([name, number]): [number, string] => [number, name]),
  [11, "EAGAIN"],
  [85, "ERESTART"],
  [95, "EOPNOTSUPP"],
  [524, "ENOTSUPP"],
]);

export function errnoName(errno: number): string {
  return errnoNames.get(errno) ?? `errno ${errno}`;
}

const AF_INET = 2;
const AF_NETLINK = 16;
const SOCK_STREAM = 1;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const SOCK_NONBLOCK = 0o4000;
const CLONE_NEWNET = 0x40000000;
const MSG_DONTWAIT = 0x40;
const MSG_TRUNC = 0x20;
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const EAGAIN = constants.errno.EAGAIN;

async function load(): Promise<Native> {
  if (process.platform !== "linux") {
    throw new HostError(
      "unavailable",
      `Cannot open a netlink socket: this is ${process.platform}, not linux`,
    );
  }
  const { default: koffi } = await import("koffi").catch((cause: unknown) => {
    const reason = (cause as Error).message.split("\n")[0];
    throw new HostError(
      "unavailable",
      `Cannot open a netlink socket: the koffi library does not load: ${reason}`,
      { cause },
    );
  });
  const libc = koffi.load(null);
  const socket = libc.func("int socket(int, int, int)");
  const bind = libc.func("int bind(int, void *, uint32_t)");
  const listen = libc.func("int listen(int, int)");
  const getsockname = libc.func("int getsockname(int, void *, void *)");
  const setsockopt = libc.func("int setsockopt(int, int, int, void *, uint32_t)");
  const recv = libc.func("intptr_t recv(int, void *, size_t, int)");
  const recvmmsg = libc.func("int recvmmsg(int, void *, uint32_t, int, void *)");
  const setns = libc.func("int setns(int, int)");
  const mallocTrim = optional(() => libc.func("int malloc_trim(size_t)"));

  const fail = (what: string): never => {
    const errno = errnoName(koffi.errno());
    throw new HostError("unavailable", `Cannot ${what}: ${errno}`, { errno });
  };

  const create = (protocol: number): number => {
    const fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    return fd < 0 ? fail(`open a netlink socket of protocol ${protocol}`) : fd;
  };

  return {
    open(protocol, netns) {
      const fd = netns === undefined ? create(protocol) : inNamespace(netns, () => create(protocol));
      const address = new DataView(new ArrayBuffer(12));
      address.setUint16(0, AF_NETLINK, littleEndian);
      const bytes = new Uint8Array(address.buffer);
      const length = Uint8Array.of(...(littleEndian ? [12, 0, 0, 0] : [0, 0, 0, 12]));
      if (bind(fd, bytes, 12) !== 0 || getsockname(fd, bytes, length) !== 0) {
        const errno = errnoName(koffi.errno());
        closeSync(fd);
        throw new HostError("unavailable", `Cannot bind a netlink socket of protocol ${protocol}: ${errno}`, {
          errno,
        });
      }
      return { fd, portId: address.getUint32(4, littleEndian) };
    },
    setOption(fd, level, name, value) {
      return setsockopt(fd, level, name, value, value.length) === 0;
    },
    attachFilter(fd, program) {
      const copy = unmovedBytes(program.length);
      copy.set(program);
      const description = new DataView(new ArrayBuffer(16));
      description.setUint16(0, program.length / 8, littleEndian);
      description.setBigUint64(8, koffi.address(copy), littleEndian);
      return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, new Uint8Array(description.buffer), 16) === 0;
    },
    receive(fd, into) {
      const length = Number(recv(fd, into, into.length, MSG_DONTWAIT | MSG_TRUNC));
      if (length >= 0) return length;
      const errno = koffi.errno();
      if (errno === EAGAIN) return 0;
      throw new HostError("lost", `Cannot read from a netlink socket: ${errnoName(errno)}`, {
        errno: errnoName(errno),
      });
    },
    datagrams: (count, size) =>
      new Datagrams(count, size, { wordSize: koffi.sizeof("void *"), addressOf: koffi.address }),
    receiveMany(fd, { headers, count }) {
      return new Promise((resolve, reject) => {
        recvmmsg.async(fd, headers, count, MSG_DONTWAIT, null, (error: Error | null, received: number) => {
          if (error === null) resolve(Math.max(0, received));
          else reject(error);
        });
      });
    },
    watch(fd, readable) {
      const handle = koffi.node.poll(fd, { readable: true }, () => {
        readable();
        // Node.js runs what waits for promises after its own callbacks, not after those of koffi.
        setImmediate(nothing);
      });
      handle.unref();
      return handle;
    },
    listenOnLoopback(port) {
      const fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      if (fd < 0) fail("open a TCP socket");
      const address = new DataView(new ArrayBuffer(16));
      address.setUint16(0, AF_INET, littleEndian);
      address.setUint16(2, port);
      address.setUint32(4, 0x7f000001);
      if (bind(fd, new Uint8Array(address.buffer), 16) === 0 && listen(fd, 128) === 0) return fd;
      const errno = errnoName(koffi.errno());
      closeSync(fd);
      throw new HostError("unavailable", `Cannot listen on 127.0.0.1:${port}: ${errno}`, { errno });
    },
    trimHeap: () => void mallocTrim?.(0),
    inside: inNamespace,
  };

  // A socket stays in the namespace it was created in. Only this thread moves, and it is back before anything else runs.
  function inNamespace<T>(netns: string, action: () => T): T {
    const home = openSync("/proc/thread-self/ns/net", "r");
    try {
      const there = openNamespace(netns);
      try {
        if (setns(there, CLONE_NEWNET) !== 0) fail(`enter network namespace ${netns}`);
      } finally {
        closeSync(there);
      }
      try {
        return action();
      } finally {
        if (setns(home, CLONE_NEWNET) !== 0) fail("return to our own network namespace");
      }
    } finally {
      closeSync(home);
    }
  }
}

function nothing(): void {}

/** A function that not every C library has. */
function optional<T>(load: () => T): T | null {
  try {
    return load();
  } catch {
    return null;
  }
}

function openNamespace(netns: string): number {
  try {
    return openSync(netns, "r");
  } catch (cause) {
    throw new HostError(
      "unavailable",
      `Cannot enter network namespace ${netns}: ${(cause as Error).message}`,
      {
        cause,
      },
    );
  }
}
