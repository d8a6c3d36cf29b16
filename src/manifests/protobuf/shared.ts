// Values by the bytes they were decoded from: equal bytes are not decoded, copied or kept twice.
import type { Buffer } from "node:buffer";

/** Node names are up to 253 bytes; the table must not keep much more alive. */
const longest = 256;

/** Of fixed size: a collision replaces the older value, which costs memory, never correctness. */
export class SharedValues<T> {
  readonly #keys: string[];
  readonly #values: (T | undefined)[];

  /** A power of two. */
  constructor(slots: number) {
    this.#keys = new Array(slots).fill("");
    this.#values = new Array(slots).fill(undefined);
  }

  /** undefined: not kept, or no longer. */
  find(bytes: Buffer, start: number, end: number): T | undefined {
    if (end - start > longest) return undefined;
    const slot = this.#slotOf(bytes, start, end);
    return hasBytes(this.#keys[slot]!, bytes, start, end) ? this.#values[slot] : undefined;
  }

  keep(bytes: Buffer, start: number, end: number, value: T): T {
    if (end - start > longest) return value;
    const slot = this.#slotOf(bytes, start, end);
    this.#keys[slot] = bytes.toString("latin1", start, end);
    this.#values[slot] = value;
    return value;
  }

  #slotOf(bytes: Buffer, start: number, end: number): number {
    let hash = end - start;
    for (let i = start; i < end; i++) hash = (Math.imul(hash, 31) + bytes[i]!) | 0;
    return (hash ^ (hash >>> 15)) & (this.#keys.length - 1);
  }
}

/** Whether these are the bytes of the text, one for each character. */
export function hasBytes(text: string, bytes: Buffer, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false;
  return true;
}
