// Finds keys of one length by their bytes, without an object for each.
import { getRandomValues } from "node:crypto";
import type { Bytes } from "../netlink/bytes.ts";

export class KeyIndex {
  readonly #length: number;
  /** All keys, concatenated. */
  readonly #keys: Buffer;
  /** A hash table with the numbers of keys, from 1 on; at least half of its entries are 0. */
  readonly #places: Int32Array;
  /** One for each byte of a key. They are random: addresses and ports cannot be chosen so that all get the same place. */
  readonly #factors: Int32Array;
  /** The leading bits of a hash are the place. */
  readonly #shift: number;

  constructor(count: number, length: number) {
    this.#length = length;
    this.#keys = Buffer.alloc(count * length);
    this.#shift = Math.clz32(count) - 1;
    this.#places = new Int32Array(2 ** (32 - this.#shift));
    this.#factors = getRandomValues(new Int32Array(length)).map((factor) => factor | 1);
  }

  /** A key of another length is not found. */
  add(number: number, key: Bytes): void {
    if (key.length !== this.#length) return;
    const at = number * this.#length;
    this.#keys.write(key, at, "latin1");
    this.#places[this.#placeOf(this.#keys, at)] = number + 1;
  }

  /** The number of the key with these bytes; -1 when there is none. */
  find(bytes: Uint8Array, from: number, to: number): number {
    return to - from === this.#length ? this.#places[this.#placeOf(bytes, from)]! - 1 : -1;
  }

  /** The position in the hash table of this key, or where it would be. */
  #placeOf(bytes: Uint8Array, from: number): number {
    let hash = 0;
    for (let i = 0; i < this.#length; i++) hash += Math.imul(bytes[from + i]!, this.#factors[i]!);
    let place = (hash | 0) >>> this.#shift;
    for (;;) {
      const number = this.#places[place]! - 1;
      if (number === -1 || isSame(this.#keys, number * this.#length, bytes, from, this.#length)) return place;
      place = (place + 1) & (this.#places.length - 1);
    }
  }
}

export function isSame(a: Uint8Array, from: number, b: Uint8Array, at: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (a[from + i] !== b[at + i]) return false;
  return true;
}
