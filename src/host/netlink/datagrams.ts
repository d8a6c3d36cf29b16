// Buffers for the datagrams of one recvmmsg, with the headers that describe them to the kernel.
import { littleEndian, unmovedBytes } from "./bytes.ts";

/** Memory addresses from native code; an address or a length takes one word. */
export type Memory = { readonly wordSize: number; readonly addressOf: (bytes: Uint8Array) => bigint };

const MSG_TRUNC = 0x20;

/** Words of a `struct mmsghdr`, and which of them are used; of `flags` and `length` the first four bytes. */
const header = { words: 8, parts: 2, partCount: 3, flags: 6, length: 7 };

export class Datagrams {
  readonly count: number;
  /** An array of `struct mmsghdr`, for the system call. */
  readonly headers: Uint8Array;
  readonly #headers: DataView;
  readonly #places: readonly Buffer[];
  /** Referenced here, since otherwise only the kernel uses it. */
  readonly #parts: Uint8Array;
  readonly #wordSize: number;

  constructor(count: number, size: number, { wordSize, addressOf }: Memory) {
    this.count = count;
    this.#wordSize = wordSize;
    const room = new ArrayBuffer(count * size);
    this.#places = Array.from({ length: count }, (_, i) => Buffer.from(room, i * size, size));
    this.#parts = unmovedBytes(count * 2 * wordSize);
    const parts = wordsOf(this.#parts, wordSize);
    this.headers = unmovedBytes(count * header.words * wordSize);
    this.#headers = new DataView(this.headers.buffer);
    const headers = wordsOf(this.headers, wordSize);
    for (const [i, place] of this.#places.entries()) {
      parts(2 * i, addressOf(place));
      parts(2 * i + 1, BigInt(size));
      headers(header.words * i + header.parts, addressOf(this.#parts) + BigInt(2 * i * wordSize));
      headers(header.words * i + header.partCount, 1n);
    }
  }

  /** What came into a place; null: more than fits. */
  at(place: number): { readonly buffer: Buffer; readonly length: number } | null {
    const word = (index: number) =>
      this.#headers.getUint32((header.words * place + index) * this.#wordSize, littleEndian);
    if ((word(header.flags) & MSG_TRUNC) !== 0) return null;
    return { buffer: this.#places[place]!, length: word(header.length) };
  }
}

function wordsOf(bytes: Uint8Array, wordSize: number): (index: number, value: bigint) => void {
  const view = new DataView(bytes.buffer);
  return (index, value) => {
    if (wordSize === 8) view.setBigUint64(index * 8, value, littleEndian);
    else view.setUint32(index * 4, Number(value), littleEndian);
  };
}
