// Writes the bytes of a response to the client, with optional faults.
import type { ServerResponse } from "node:http";
import { constants, crc32, deflateRawSync } from "node:zlib";
import type { ByteFault } from "../faults.ts";

export type Wire = {
  /** Writes and flushes; with gzip, each call is one gzip member, as kube-apiserver flushes its streams. */
  send(data: string | Buffer): void;
  end(): void;
  /** Resets the connection. */
  destroy(): void;
  /** Applies a fault to everything sent from now on. A second one is ignored, because pending bytes would be lost. */
  arm(fault: ByteFault): void;
  /** Called once, when either side has closed. */
  onClose(listener: () => void): void;
};

export function openWire(response: ServerResponse, gzip: boolean): Wire {
  const plain = plainPath(response);
  let path = plain;
  return {
    send(data) {
      const bytes = Buffer.from(data);
      if (bytes.length === 0 || response.writableEnded || response.destroyed) return;
      path.write(gzip ? gzipMember(bytes) : bytes);
    },
    end: () => path.end(),
    destroy: () => void response.socket?.resetAndDestroy(),
    arm(fault) {
      if (path === plain) path = faultyPath(response, fault);
    },
    onClose: (listener) => void response.once("close", listener),
  };
}

/**
 * One gzip member whose data ends in a flush before the member's own end. Go's reader hands out data that
 * comes together with the end of a member only when the next member has begun.
 */
function gzipMember(bytes: Buffer): Buffer {
  const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
  const body = deflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH });
  const emptyLastBlock = Buffer.from([3, 0]);
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc32(bytes), 0);
  trailer.writeUInt32LE(bytes.length >>> 0, 4);
  return Buffer.concat([header, body, emptyLastBlock, trailer]);
}

type Path = { write(bytes: Buffer): void; end(): void };

function plainPath(response: ServerResponse): Path {
  return { write: (bytes) => void response.write(bytes), end: () => void response.end() };
}

function faultyPath(response: ServerResponse, fault: ByteFault): Path {
  switch (fault.kind) {
    case "silent":
      return { write() {}, end() {} };
    case "reset":
      return cutPath(response, fault.afterBytes, () => void response.socket?.resetAndDestroy());
    case "truncate":
      return cutPath(response, fault.afterBytes, () => void response.end());
    case "drip":
      return dripPath(response, fault.bytes, fault.everyMs);
  }
}

function cutPath(response: ServerResponse, afterBytes: number, cut: () => void): Path {
  let left = afterBytes;
  return {
    write(bytes) {
      const part = bytes.subarray(0, left);
      left -= part.length;
      // Wait until the bytes are sent; otherwise the client would not receive the partial line.
      response.write(part, () => left === 0 && cut());
    },
    end: () => void response.end(),
  };
}

function dripPath(response: ServerResponse, size: number, everyMs: number): Path {
  let waiting = Buffer.alloc(0);
  let ended = false;
  const timer = setInterval(() => {
    if (waiting.length > 0) response.write(waiting.subarray(0, size));
    waiting = waiting.subarray(size);
    if (ended && waiting.length === 0) response.end();
  }, everyMs);
  response.once("close", () => clearInterval(timer));
  return {
    write(bytes) {
      waiting = Buffer.concat([waiting, bytes]);
    },
    end() {
      ended = true;
    },
  };
}
