// JSON while it is written, byte by byte.
import { backslash, comma, doubleQuote, NotPlain, space } from "./yaml-cursor.ts";

/** Enough for what is read in stretches. */
const spare = Buffer.allocUnsafeSlow(200_000);

export class JsonBytes {
  readonly #bytes: Buffer;
  readonly #view: DataView;
  #length = 0;

  /** Only the last one that was made can be written. */
  constructor(size: number) {
    this.#bytes = size > spare.length ? Buffer.allocUnsafe(size) : spare.subarray(0, size);
    this.#view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, size);
  }

  parsed(): unknown {
    this.#mustFit();
    return JSON.parse(this.#bytes.toString("utf8", 0, this.#length));
  }

  get length(): number {
    return this.#length;
  }

  /** What was written from there on. */
  since(length: number): Uint8Array {
    this.#mustFit();
    return this.#bytes.subarray(length, this.#length);
  }

  /** Takes back what was written from there on. */
  cut(length: number): void {
    this.#length = length;
  }

  put(byte: number): void {
    this.#bytes[this.#length++] = byte;
  }

  /** Ends an array or object, in place of the comma behind its last value. */
  close(byte: number): void {
    if (this.#bytes[this.#length - 1] === comma) this.#length--;
    this.put(byte);
  }

  /** Four bytes at a time, of a source that goes on for a while; what is too much is written over. */
  copyWords(source: DataView, from: number, length: number): void {
    const start = this.#length;
    this.#length += length;
    if (this.#length + 4 > this.#view.byteLength) throw new NotPlain();
    for (let i = 0; i < length; i += 4) this.#view.setInt32(start + i, source.getInt32(from + i));
  }

  copy(source: Uint8Array, from: number, to: number): void {
    const bytes = this.#bytes;
    let length = this.#length;
    for (let at = from; at < to; at++) bytes[length++] = source[at]!;
    this.#length = length;
  }

  /** Puts quotes around a text; false when JSON asks for more than that. */
  copyText(source: Uint8Array, from: number, to: number): boolean {
    const bytes = this.#bytes;
    let length = this.#length;
    bytes[length++] = doubleQuote;
    for (let at = from; at < to; at++) {
      const byte = source[at]!;
      if (byte < space || byte === doubleQuote || byte === backslash) return false;
      bytes[length++] = byte;
    }
    bytes[length++] = doubleQuote;
    this.#length = length;
    return true;
  }

  write(json: string): void {
    if (this.#length + Buffer.byteLength(json) > this.#bytes.length) throw new NotPlain();
    this.#length += this.#bytes.write(json, this.#length);
  }

  /** What is put behind the end of a buffer is lost. */
  #mustFit(): void {
    if (this.#length > this.#bytes.length) throw new NotPlain();
  }
}
