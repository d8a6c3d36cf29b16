// Recognises wanted elements of sets and verdict maps in a dump by their bytes: only those that differ are decoded.
import type { Steps } from "../../model/steps.ts";
import type { Element, NftSet, Verdict } from "../../plan/nftables/types.ts";
import { sameVerdict } from "../../plan/nftables/verdict.ts";
import { DuplicateElement, type Elements, type Matches, readElement } from "../netlink/elements.ts";
import { commentOf } from "../netlink/userdata.ts";
import { decodeElements, encodeElementKey } from "./elements.ts";
import { isSame, KeyIndex } from "./key-index.ts";

/** How many keys are added between two turns of the event loop. */
const keysInStep = 2000;

/** What one set or map should hold, other than a slot map or a set of ranges. */
export class WantedElements {
  readonly #set: NftSet;
  readonly #byKey: ReadonlyMap<string, Element>;
  readonly #wanted: readonly Element[];
  readonly #index: KeyIndex;
  /** The bytes after the key of an element that has this verdict and nothing else. */
  readonly #rests = new Map<Verdict | null, Buffer>();

  static *of(set: NftSet, wanted: ReadonlyMap<string, Element>): Steps<WantedElements> {
    const elements = new WantedElements(set, wanted);
    yield* elements.#addKeys();
    return elements;
  }

  private constructor(set: NftSet, wanted: ReadonlyMap<string, Element>) {
    this.#set = set;
    this.#byKey = wanted;
    this.#wanted = [...wanted.values()];
    const [first] = this.#wanted;
    this.#index = new KeyIndex(
      wanted.size,
      first === undefined ? 0 : encodeElementKey(set, first.key).length,
    );
  }

  *#addKeys(): Steps {
    for (let i = 0; i < this.#wanted.length; i++) {
      this.#index.add(i, encodeElementKey(this.#set, this.#wanted[i]!.key));
      if (i % keysInStep === keysInStep - 1) yield;
    }
  }

  /** These elements by key: the wanted map itself if they are exactly the wanted ones. */
  *elementsIn(elements: Elements): Steps<ReadonlyMap<string, Element>> {
    const seen = new Uint8Array(this.#wanted.length);
    let count = 0;
    const matches: Matches = (bytes, key, keyEnd, rest, end) => {
      const number = this.#index.find(bytes, key, keyEnd);
      if (number === -1 || !this.#isWanted(this.#wanted[number]!, bytes, rest, end)) return false;
      if (seen[number] === 1) throw new DuplicateElement();
      seen[number] = 1;
      count++;
      return true;
    };
    const others = yield* elements.except(matches);
    if (others.length === 0 && count === this.#wanted.length) return this.#byKey;
    const found = yield* decodeElements(this.#set, others);
    for (let i = 0; i < this.#wanted.length; i++) {
      if (seen[i] === 0) continue;
      const element = this.#wanted[i]!;
      if (found.has(element.key)) throw new DuplicateElement();
      found.set(element.key, element);
    }
    return found;
  }

  /** Thousands of elements have the same verdict: it is decoded once. */
  #isWanted({ data: wanted, comment }: Element, bytes: Buffer, rest: number, end: number): boolean {
    const known = comment === null ? this.#rests.get(wanted) : undefined;
    if (known?.length === end - rest && isSame(known, 0, bytes, rest, known.length)) return true;
    const { data, userdata, packets } = readElement(bytes, rest, end);
    const isSameElement =
      commentOf(userdata) === comment && sameVerdict(typeof data === "object" ? data : null, wanted);
    if (isSameElement && userdata === undefined && packets === undefined)
      this.#rests.set(wanted, Buffer.from(bytes.subarray(rest, end)));
    return isSameElement;
  }
}
