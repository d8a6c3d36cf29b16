// A growing buffer of netlink bytes: numbers in either order, strings, and attributes nested in place.

import { type Bytes, littleEndian } from "./bytes.ts";

const nestedFlag = 0x8000;

export class Writer {
  #bytes: Uint8Array;
  #view: DataView;
  #length = 0;

  constructor(capacity = 4096) {
    this.#bytes = new Uint8Array(capacity);
    this.#view = new DataView(this.#bytes.buffer);
  }

  get length(): number {
    return this.#length;
  }

  /** What was written so far; valid until the next write. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  u8(value: number): void {
    const at = this.#advance(1);
    this.#view.setUint8(at, value);
  }

  u16(value: number): void {
    const at = this.#advance(2);
    this.#view.setUint16(at, value, littleEndian);
  }

  u32(value: number): void {
    const at = this.#advance(4);
    this.#view.setUint32(at, value, littleEndian);
  }

  u64(value: bigint): void {
    const at = this.#advance(8);
    this.#view.setBigUint64(at, value, littleEndian);
  }

  u16be(value: number): void {
    const at = this.#advance(2);
    this.#view.setUint16(at, value);
  }

  u32be(value: number): void {
    const at = this.#advance(4);
    this.#view.setUint32(at, value);
  }

  u64be(value: bigint): void {
    const at = this.#advance(8);
    this.#view.setBigUint64(at, value);
  }

  raw(value: Bytes): void {
    const length = value.length;
    const at = this.#advance(length);
    const bytes = this.#bytes;
    for (let i = 0; i < length; i++) bytes[at + i] = value.charCodeAt(i);
  }

  append(value: Uint8Array): void {
    const at = this.#advance(value.length);
    this.#bytes.set(value, at);
  }

  /** UTF-8, ended by a zero byte. */
  text(value: string): void {
    const length = value.length;
    const start = this.#advance(length + 1);
    const bytes = this.#bytes;
    for (let i = 0; i < length; i++) {
      const code = value.charCodeAt(i);
      if (code > 127) {
        this.#length = start;
        this.append(Buffer.from(`${value}\0`, "utf8"));
        return;
      }
      bytes[start + i] = code;
    }
    bytes[start + length] = 0;
  }

  zeros(count: number): void {
    const at = this.#advance(count);
    this.#bytes.fill(0, at, at + count);
  }

  /** Opens an attribute; pass the result to `end`. */
  begin(type: number): number {
    const at = this.#advance(4);
    this.#view.setUint16(at + 2, type, littleEndian);
    return at;
  }

  /** Opens an attribute that holds attributes. */
  nest(type: number): number {
    return this.begin(type | nestedFlag);
  }

  /** Closes an attribute: sets its length and pads to four bytes. */
  end(at: number): void {
    const length = this.#length - at;
    if (length > 0xffff) throw new RangeError(`a netlink attribute of ${length} bytes does not fit`);
    this.#view.setUint16(at, length, littleEndian);
    this.pad();
  }

  pad(): void {
    const rest = -this.#length & 3;
    if (rest !== 0) this.zeros(rest);
  }

  /** Overwrites four bytes, in the machine's order. */
  patchU32(at: number, value: number): void {
    this.#view.setUint32(at, value, littleEndian);
  }

  /** Overwrites two bytes, in the machine's order. */
  patchU16(at: number, value: number): void {
    this.#view.setUint16(at, value, littleEndian);
  }

  #advance(count: number): number {
    const at = this.#length;
    const needed = at + count;
    if (needed > this.#bytes.length) this.#grow(needed);
    this.#length = needed;
    return at;
  }

  #grow(needed: number): void {
    const bytes = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    bytes.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }
}
