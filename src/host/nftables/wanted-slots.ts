// Recognises wanted slots in a dump by their bytes: of a hundred thousand only a few have to be decoded.
import type { Steps } from "../../model/steps.ts";
import type { BackendSlots, NftSet } from "../../plan/nftables/types.ts";
import { hostU32 } from "../netlink/attributes.ts";
import { DuplicateElement, type Elements, type Matches, valueAt } from "../netlink/elements.ts";
import { backendBytes, decodeSlots, encodeKey, writeBackend } from "./elements.ts";
import { isSame, KeyIndex } from "./key-index.ts";

const slotBytes = 4;
/** How many BackendSlots are added between two turns of the event loop. */
const keysInStep = 2000;

/** What one slot map should hold. */
export class WantedSlots {
  readonly #set: NftSet;
  readonly #byKey: ReadonlyMap<string, BackendSlots>;
  readonly #wanted: readonly BackendSlots[];
  /** The keys of all BackendSlots, without slot numbers. */
  readonly #index: KeyIndex;
  /** The overall index of the first slot of each BackendSlots; then the total number of slots. */
  readonly #firsts: Int32Array;
  /** The contents of all slots, concatenated. */
  readonly #values: Buffer;
  readonly #valueLength: number;

  static *of(set: NftSet, wanted: ReadonlyMap<string, BackendSlots>): Steps<WantedSlots> {
    const slots = new WantedSlots(set, wanted);
    yield* slots.#addKeys();
    yield* slots.#addValues();
    return slots;
  }

  private constructor(set: NftSet, byKey: ReadonlyMap<string, BackendSlots>) {
    const wanted = [...byKey.values()];
    this.#set = set;
    this.#byKey = byKey;
    this.#wanted = wanted;
    const [first] = wanted;
    this.#index = new KeyIndex(wanted.length, first === undefined ? 0 : encodeKey(set, first.key).length);
    this.#firsts = new Int32Array(wanted.length + 1);
    for (const [i, { backends }] of wanted.entries())
      this.#firsts[i + 1] = this.#firsts[i]! + backends.length;
    this.#valueLength = valueLengthOf(wanted);
    this.#values = Buffer.alloc(this.#firsts[wanted.length]! * this.#valueLength);
  }

  *#addKeys(): Steps {
    for (const [i, { key }] of this.#wanted.entries()) {
      this.#index.add(i, encodeKey(this.#set, key));
      if (i % keysInStep === keysInStep - 1) yield;
    }
  }

  *#addValues(): Steps {
    let at = 0;
    for (const [i, { backends }] of this.#wanted.entries()) {
      for (const backend of backends) {
        if (backend !== undefined) writeBackend(this.#values, at, backend);
        at += this.#valueLength;
      }
      if (i % keysInStep === keysInStep - 1) yield;
    }
  }

  /** The BackendSlots of these elements, in the wanted map itself if all are as wanted; else those that are as wanted are the wanted objects. */
  *slotsIn(elements: Elements): Steps<ReadonlyMap<string, BackendSlots>> {
    const seen = new Uint8Array(this.#firsts[this.#wanted.length]!);
    let count = 0;
    const matches: Matches = (bytes, key, keyEnd, rest, end) => {
      const slot = this.#slotOf(bytes, key, keyEnd, rest, end);
      if (slot === -1) return false;
      if (seen[slot] === 1) throw new DuplicateElement();
      seen[slot] = 1;
      count++;
      return true;
    };
    const others = yield* elements.except(matches);
    if (others.length === 0 && count === seen.length) return this.#byKey;
    return this.#withOthers(seen, decodeSlots(this.#set, others));
  }

  /** The overall index of the equal slot; -1 when there is none. */
  #slotOf(bytes: Buffer, key: number, keyEnd: number, rest: number, end: number): number {
    const value = valueAt(bytes, rest, end, this.#valueLength);
    if (value === -1) return -1;
    const number = this.#index.find(bytes, key, keyEnd - slotBytes);
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
