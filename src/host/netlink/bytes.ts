// Bytes as text, one character from 0 to 255 for each: equal bytes are equal strings, and a Map can hold them as keys.
import { type Address, addressBytes, formatAddress, ipv4Number } from "../../model/address.ts";

export type Bytes = string;

export const littleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

export function u8Bytes(value: number): Bytes {
  return String.fromCharCode(value & 255);
}

export function u16Bytes(value: number): Bytes {
  return String.fromCharCode((value >> 8) & 255, value & 255);
}

export function u32Bytes(value: number): Bytes {
  return String.fromCharCode(value >>> 24, (value >> 16) & 255, (value >> 8) & 255, value & 255);
}

/** In the machine's order: marks, interface numbers, what `numgen` makes. */
export function hostU32Bytes(value: number): Bytes {
  if (!littleEndian) return u32Bytes(value);
  return String.fromCharCode(value & 255, (value >> 8) & 255, (value >> 16) & 255, value >>> 24);
}

export function hostU32Of(bytes: Bytes): number {
  const at = (i: number) => bytes.charCodeAt(littleEndian ? 3 - i : i);
  return ((at(0) << 24) | (at(1) << 16) | (at(2) << 8) | at(3)) >>> 0;
}

const mappedPrefix: Bytes = `${"\0".repeat(10)}\xff\xff`;

/** 4 or 16 bytes; 16 also for an IPv4-mapped address, which another program may have written. */
export function addressText(address: Address): Bytes {
  const ipv4 = ipv4Number(address);
  if (ipv4 < 0) {
    const bytes = addressBytes(address)!;
    return `${bytes.length === 4 ? mappedPrefix : ""}${String.fromCharCode(...bytes)}`;
  }
  return String.fromCharCode(ipv4 >>> 24, (ipv4 >>> 16) & 255, (ipv4 >>> 8) & 255, ipv4 & 255);
}

export function addressOf(bytes: Bytes): Address {
  if (bytes.length === 4) {
    return `${bytes.charCodeAt(0)}.${bytes.charCodeAt(1)}.${bytes.charCodeAt(2)}.${bytes.charCodeAt(3)}`;
  }
  return formatAddress(Buffer.from(bytes, "latin1"));
}

/** Memory whose address native code may keep: the garbage collector moves small buffers. */
export function unmovedBytes(length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new ArrayBuffer(Math.max(256, length)));
}

/** Zero-ended and filled up to `length`: an interface name is 16 bytes. */
export function paddedText(text: string, length: number): Bytes {
  return Buffer.from(text, "utf8").toString("latin1").padEnd(length, "\0");
}
