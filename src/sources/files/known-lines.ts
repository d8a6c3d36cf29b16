// Lines of YAML that came before, with the JSON that they became: most of what programs write is like one of a few.
import type { JsonBytes } from "./json-bytes.ts";
import { colon, newline } from "./yaml-cursor.ts";

/** A power of two. */
const slots = 1024;
/** With the end of the line. What is longer is hardly ever alike. */
const longest = 64;
const longestJson = 80;

/** Lines are counted from where a key stands. What becomes of one depends on nothing else, as long as its text does not go on below. */
export class KnownLines {
  readonly #texts = new Uint8Array(slots * longest);
  readonly #textView = new DataView(this.#texts.buffer);
  /** 0: nothing is kept there. */
  readonly #lengths = new Uint8Array(slots);
  readonly #jsons = new Uint8Array(slots * longestJson);
  readonly #jsonView = new DataView(this.#jsons.buffer);
  readonly #jsonLengths = new Uint8Array(slots);
  readonly #keyHashes = new Int32Array(slots);
  /** Of the last line that each slot was thought of for. */
  readonly #hashes = new Int32Array(slots);
  /** The slot of the line that came behind the one of each slot the last time, and behind unknown ones behind that. */
  readonly #next = new Uint16Array(2 * slots);
  #before = 0;
  #slot = 0;
  #hash = 0;
  #end = -1;

  /** Whether this line is known. It is compared with what followed the last time, then with what its hash leads to. */
  look(bytes: DataView, from: number): boolean {
    this.#slot = this.#next[this.#before]!;
    if (!this.#isHere(bytes, from)) {
      if (!this.#find(bytes, from) || !this.#isHere(bytes, from)) {
        this.#before |= slots;
        return false;
      }
      this.#next[this.#before] = this.#slot;
    }
    this.#before = this.#slot;
    return true;
  }

  /** Where the line ends that was looked at; -1 when it is too long to be kept. */
  get end(): number {
    return this.#end;
  }

  /** Of the one that is known. */
  get keyHash(): number {
    return this.#keyHashes[this.#slot]!;
  }

  /** Whether the value of its key stands below it. */
  get isKeyAlone(): boolean {
    return this.#jsons[this.#slot * longestJson + this.#jsonLengths[this.#slot]! - 1] === colon;
  }

  copyTo(out: JsonBytes): void {
    out.copyWords(this.#jsonView, this.#slot * longestJson, this.#jsonLengths[this.#slot]!);
  }

  /** The line that was looked at, and was not known, became what was written since; it is kept when it comes for the second time. */
  keep(bytes: Buffer, from: number, out: JsonBytes, since: number, keyHash: number): void {
    const slot = this.#slot;
    const isRepeated = this.#hashes[slot] === this.#hash;
    this.#hashes[slot] = this.#hash;
    if (!isRepeated || out.length - since > longestJson) return;
    const text = bytes.subarray(from, this.#end + 1);
    const json = out.since(since);
    this.#texts.set(text, slot * longest);
    this.#lengths[slot] = text.length;
    this.#jsons.set(json, slot * longestJson);
    this.#jsonLengths[slot] = json.length;
    this.#keyHashes[slot] = keyHash;
  }

  /** Finds the end of the line, and the slot for it. */
  #find(bytes: DataView, from: number): boolean {
    const last = Math.min(from + longest, bytes.byteLength);
    let hash = 0;
    for (let at = from; at < last; at++) {
      const byte = bytes.getUint8(at);
      if (byte === newline) {
        this.#slot = (hash ^ (hash >>> 10)) & (slots - 1);
        this.#hash = hash;
        this.#end = at;
        return true;
      }
      hash = (Math.imul(hash, 31) + byte) | 0;
    }
    this.#end = -1;
    return false;
  }

  /** Whether the line of the slot stands here. */
  #isHere(bytes: DataView, from: number): boolean {
    const length = this.#lengths[this.#slot]!;
    const end = from + length;
    if (length === 0 || end > bytes.byteLength) return false;
    const texts = this.#textView;
    let at = from;
    let place = this.#slot * longest;
    for (; at + 4 <= end; at += 4, place += 4) if (texts.getInt32(place) !== bytes.getInt32(at)) return false;
    for (; at < end; at++, place++) if (texts.getUint8(place) !== bytes.getUint8(at)) return false;
    this.#end = end - 1;
    return true;
  }
}
