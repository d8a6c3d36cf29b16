// JSON while it is written, byte by byte.
import { backslash, comma, doubleQuote, NotPlain, space } from "./yaml-cursor.ts";

/** Enough for what is read in stretches. */
const spare = Buffer.allocUnsafeSlow(200_000);

export class JsonBytes {
  readonly #bytes: Buffer;
  #length = 0;

  /** Only the last one that was made can be written. */
  constructor(size: number) {
    this.#bytes = size > spare.length ? Buffer.allocUnsafe(size) : spare.subarray(0, size);
  }

  parsed(): unknown {
    // What is put behind the end of a buffer is lost.
    if (this.#length > this.#bytes.length) throw new NotPlain();
    return JSON.parse(this.#bytes.toString("utf8", 0, this.#length));
  }

  put(byte: number): void {
    this.#bytes[this.#length++] = byte;
  }

  /** Ends an array or object, in place of the comma behind its last value. */
  close(byte: number): void {
    if (this.#bytes[this.#length - 1] === comma) this.#length--;
    this.put(byte);
  }

  copy(source: Uint8Array, from: number, to: number): void {
    for (let at = from; at < to; at++) this.put(source[at]!);
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
}
