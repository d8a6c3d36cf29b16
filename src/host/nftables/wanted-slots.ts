// Recognises wanted slots in a dump by their bytes: of a hundred thousand only a few have to be decoded.
import { hashOf } from "../../model/hash.ts";
import type { Steps } from "../../model/steps.ts";
import type { BackendSlots, NftSet } from "../../plan/nftables/types.ts";
import { hostU32 } from "../netlink/attributes.ts";
import { DuplicateElement, type Elements, type Matches } from "../netlink/elements.ts";
import { backendBytes, decodeSlots, encodeKey } from "./elements.ts";

const slotBytes = 4;
/** How many BackendSlots are added between two turns of the event loop. */
const keysInStep = 2000;

/** What one slot map should hold. */
export class WantedSlots {
  readonly #set: NftSet;
  readonly #wanted: readonly BackendSlots[];
  /** The keys of all BackendSlots, without slot numbers, concatenated. */
  readonly #keys: Buffer;
  readonly #keyLength: number;
  /** A hash table with the numbers of BackendSlots, from 1 on; at least half of its entries are 0. */
  readonly #index: Int32Array;
  /** The overall index of the first slot of each BackendSlots; then the total number of slots. */
  readonly #firsts: Int32Array;
  /** The contents of all slots, concatenated. */
  readonly #values: Buffer;
  readonly #valueLength: number;

  static *of(set: NftSet, wanted: ReadonlyMap<string, BackendSlots>): Steps<WantedSlots> {
    const slots = new WantedSlots(set, [...wanted.values()]);
    yield* slots.#addKeys();
    yield* slots.#addValues();
    return slots;
  }

  private constructor(set: NftSet, wanted: readonly BackendSlots[]) {
    this.#set = set;
    this.#wanted = wanted;
    const [first] = wanted;
    this.#keyLength = first === undefined ? 0 : encodeKey(set, first.key).length;
    this.#keys = Buffer.alloc(wanted.length * this.#keyLength);
    this.#index = new Int32Array(2 << (32 - Math.clz32(wanted.length)));
    this.#firsts = new Int32Array(wanted.length + 1);
    for (const [i, { backends }] of wanted.entries())
      this.#firsts[i + 1] = this.#firsts[i]! + backends.length;
    this.#valueLength = valueLengthOf(wanted);
    this.#values = Buffer.alloc(this.#firsts[wanted.length]! * this.#valueLength);
  }

  *#addKeys(): Steps {
    for (const [i, { key }] of this.#wanted.entries()) {
      const at = i * this.#keyLength;
      this.#keys.write(encodeKey(this.#set, key), at, "latin1");
      this.#index[this.#placeOf(this.#keys, at)] = i + 1;
      if (i % keysInStep === keysInStep - 1) yield;
    }
  }

  *#addValues(): Steps {
    let at = 0;
    for (const [i, { backends }] of this.#wanted.entries()) {
      for (const backend of backends) {
        if (backend !== undefined) this.#values.write(backendBytes(backend), at, "latin1");
        at += this.#valueLength;
      }
      if (i % keysInStep === keysInStep - 1) yield;
    }
  }

  /** The BackendSlots of these elements; those that are as wanted are the same objects as the wanted ones. */
  *slotsIn(elements: Elements): Steps<Map<string, BackendSlots>> {
    const seen = new Uint8Array(this.#firsts[this.#wanted.length]!);
    const matches: Matches = (bytes, key, keyEnd, value, valueEnd) => {
      const slot = this.#slotOf(bytes, key, keyEnd, value, valueEnd);
      if (slot === -1) return false;
      if (seen[slot] === 1) throw new DuplicateElement();
      seen[slot] = 1;
      return true;
    };
    const others = yield* elements.except(matches);
    return this.#withOthers(seen, decodeSlots(this.#set, others));
  }

  /** The overall index of the equal slot; -1 when there is none. */
  #slotOf(bytes: Buffer, key: number, keyEnd: number, value: number, valueEnd: number): number {
    if (keyEnd - key !== this.#keyLength + slotBytes || valueEnd - value !== this.#valueLength) return -1;
    const number = this.#index[this.#placeOf(bytes, key)]! - 1;
    if (number === -1) return -1;
    const slot = this.#firsts[number]! + hostU32(bytes, keyEnd - slotBytes);
    const isWanted =
      slot < this.#firsts[number + 1]! &&
      isSame(this.#values, slot * this.#valueLength, bytes, value, this.#valueLength);
    return isWanted ? slot : -1;
  }

  #withOthers(seen: Uint8Array, others: ReadonlyMap<string, BackendSlots>): Map<string, BackendSlots> {
    const found = new Map(others);
    for (let i = 0; i < this.#wanted.length; i++) {
      const wanted = this.#wanted[i]!;
      const known = seen.subarray(this.#firsts[i]!, this.#firsts[i + 1]!);
      const other = others.get(wanted.key);
      if (other === undefined && !known.includes(0)) found.set(wanted.key, wanted);
      else if (other !== undefined || known.includes(1)) found.set(wanted.key, both(wanted, known, other));
    }
    return found;
  }

  /** The position in the hash table of the BackendSlots with this key, or where it would be. */
  #placeOf(bytes: Uint8Array, from: number): number {
    const mask = this.#index.length - 1;
    const hash = hashOf(bytes, from, from + this.#keyLength);
    let place = (hash ^ (hash >>> 15)) & mask;
    for (;;) {
      const number = this.#index[place]! - 1;
      if (number === -1 || isSame(this.#keys, number * this.#keyLength, bytes, from, this.#keyLength))
        return place;
      place = (place + 1) & mask;
    }
  }
}

/** The slots of one BackendSlots that are as wanted, and others. */
function both(
  { key, backends: wanted }: BackendSlots,
  known: Uint8Array,
  other: BackendSlots | undefined,
): BackendSlots {
  const backends = wanted.map((backend, slot) => (known[slot] === 1 ? backend : undefined));
  for (const [slot, backend] of other?.backends.entries() ?? []) {
    if (backend === undefined) continue;
    if (backends[slot] !== undefined) throw new DuplicateElement();
    backends[slot] = backend;
  }
  while (backends.length > 0 && backends.at(-1) === undefined) backends.pop();
  return { key, backends };
}

function valueLengthOf(spreads: readonly BackendSlots[]): number {
  for (const { backends } of spreads)
    for (const backend of backends) if (backend !== undefined) return backendBytes(backend).length;
  return 0;
}

function isSame(a: Uint8Array, from: number, b: Uint8Array, at: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (a[from + i] !== b[at + i]) return false;
  return true;
}
