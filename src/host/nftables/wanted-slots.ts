// Recognises the slots that are wanted in what the kernel tells, by their bytes: of a hundred thousand hardly any need be read.
import { hashOf } from "../../model/hash.ts";
import type { BackendSlots, NftSet } from "../../plan/nftables/types.ts";
import { hostU32 } from "../netlink/attributes.ts";
import { DuplicateElement, type Elements, type Matches } from "../netlink/elements.ts";
import { backendBytes, decodeSpreads, encodeKey } from "./elements.ts";

const slotBytes = 4;

/** What one slot map should hold. */
export class WantedSlots {
  readonly #set: NftSet;
  readonly #spreads: readonly BackendSlots[];
  /** The keys of the Spreads, without slots, one behind the other. */
  readonly #keys: Uint8Array;
  readonly #keyLength: number;
  /** Numbers of Spreads, from 1 on, where the hashes of their keys put them; at least half of these are 0. */
  readonly #index: Int32Array;
  /** Which slot, of all, is the first of each Spread; behind the last one: how many there are. */
  readonly #firsts: Int32Array;
  /** What the slots hold, one behind the other. */
  readonly #values: Buffer;
  readonly #valueLength: number;

  constructor(set: NftSet, wanted: ReadonlyMap<string, BackendSlots>) {
    this.#set = set;
    this.#spreads = [...wanted.values()];
    const count = this.#spreads.length;
    this.#keys = Buffer.from(this.#spreads.map(({ key }) => encodeKey(set, key)).join(""), "latin1");
    this.#keyLength = count === 0 ? 0 : this.#keys.length / count;
    this.#index = new Int32Array(2 << (32 - Math.clz32(count)));
    this.#firsts = new Int32Array(count + 1);
    for (let i = 0; i < count; i++) {
      this.#index[this.#placeOf(this.#keys, i * this.#keyLength)] = i + 1;
      this.#firsts[i + 1] = this.#firsts[i]! + this.#spreads[i]!.backends.length;
    }
    this.#valueLength = valueLengthOf(this.#spreads);
    this.#values = Buffer.alloc(this.#firsts[count]! * this.#valueLength);
    let at = 0;
    for (const { backends } of this.#spreads) {
      for (const backend of backends) {
        if (backend !== undefined) this.#values.write(backendBytes(backend), at, "latin1");
        at += this.#valueLength;
      }
    }
  }

  /** The Spreads that these elements make; those that are as wanted are the very ones that are. */
  spreadsIn(elements: Elements): Map<string, BackendSlots> {
    const seen = new Uint8Array(this.#firsts[this.#spreads.length]!);
    const knows: Matches = (bytes, key, keyEnd, value, valueEnd) => {
      const slot = this.#slotOf(bytes, key, keyEnd, value, valueEnd);
      if (slot === -1) return false;
      if (seen[slot] === 1) throw new DuplicateElement();
      seen[slot] = 1;
      return true;
    };
    return this.#withOthers(seen, decodeSpreads(this.#set, elements.except(knows)));
  }

  /** Which slot, of all, is like this; -1 when none is. */
  #slotOf(bytes: Buffer, key: number, keyEnd: number, value: number, valueEnd: number): number {
    if (keyEnd - key !== this.#keyLength + slotBytes || valueEnd - value !== this.#valueLength) return -1;
    const spread = this.#index[this.#placeOf(bytes, key)]! - 1;
    if (spread === -1) return -1;
    const slot = this.#firsts[spread]! + hostU32(bytes, keyEnd - slotBytes);
    const isWanted =
      slot < this.#firsts[spread + 1]! &&
      isSame(this.#values, slot * this.#valueLength, bytes, value, this.#valueLength);
    return isWanted ? slot : -1;
  }

  #withOthers(seen: Uint8Array, others: ReadonlyMap<string, BackendSlots>): Map<string, BackendSlots> {
    const found = new Map(others);
    for (let i = 0; i < this.#spreads.length; i++) {
      const wanted = this.#spreads[i]!;
      const known = seen.subarray(this.#firsts[i]!, this.#firsts[i + 1]!);
      const other = others.get(wanted.key);
      if (other === undefined && !known.includes(0)) found.set(wanted.key, wanted);
      else if (other !== undefined || known.includes(1)) found.set(wanted.key, both(wanted, known, other));
    }
    return found;
  }

  /** Where the number of the Spread with this key stands, or would stand, in the index. */
  #placeOf(bytes: Uint8Array, from: number): number {
    const mask = this.#index.length - 1;
    const hash = hashOf(bytes, from, from + this.#keyLength);
    let place = (hash ^ (hash >>> 15)) & mask;
    for (;;) {
      const spread = this.#index[place]! - 1;
      if (spread === -1 || isSame(this.#keys, spread * this.#keyLength, bytes, from, this.#keyLength))
        return place;
      place = (place + 1) & mask;
    }
  }
}

/** The slots of a Spread that are known, and others. */
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
