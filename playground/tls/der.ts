// Encodes the ASN.1 values of certificates in DER. Pure.

/** One value: its tag, its length, its content. */
export function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body]);
}

export const sequence = (...content: readonly Uint8Array[]): Buffer => der(0x30, ...content);
export const setOf = (...content: readonly Uint8Array[]): Buffer => der(0x31, ...content);
export const octets = (...content: readonly Uint8Array[]): Buffer => der(0x04, ...content);
export const text = (value: string): Buffer => der(0x0c, Buffer.from(value));
export const yes: Buffer = der(0x01, Buffer.from([0xff]));

/** `unused`: number of unused bits at the end. */
export const bits = (content: Uint8Array, unused = 0): Buffer => der(0x03, Buffer.from([unused]), content);

/** `[number] EXPLICIT`. */
export const explicit = (number: number, ...content: readonly Uint8Array[]): Buffer =>
  der(0xa0 | number, ...content);

/** `[number] IMPLICIT` of a value without parts. */
export const implicit = (number: number, content: Uint8Array): Buffer => der(0x80 | number, content);

/** A whole number, 0 or more, its most significant byte first. */
export function integer(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const short = first < 0 ? Buffer.from([0]) : bytes.subarray(first);
  return der(0x02, short[0]! < 0x80 ? short : Buffer.concat([Buffer.from([0]), short]));
}

/** `1.2.840.10045.4.3.2`. */
export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return der(0x06, ...[first * 40 + second, ...rest].map(base128));
}

/** To the second; years from 2050 on have four digits. */
export function time(date: Date): Buffer {
  const digits = date
    .toISOString()
    .replace(/\.\d+Z$/, "Z")
    .replaceAll(/[-:T]/g, "");
  return date.getUTCFullYear() < 2050
    ? der(0x17, Buffer.from(digits.slice(2)))
    : der(0x18, Buffer.from(digits));
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

function base128(value: number): Buffer {
  const bytes = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes.unshift((rest & 0x7f) | 0x80);
  return Buffer.from(bytes);
}
