// Keys are found by their bytes, in a few steps even if they were chosen to get the same place.
import fc from "fast-check";
import { expect, it } from "vitest";
import { KeyIndex } from "./key-index.ts";

const length = 12;

it("finds each key, and no other one", () => {
  const key = fc.uint8Array({ minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(fc.array(key, { maxLength: 60 }), fc.array(key, { maxLength: 20 }), (some, others) => {
      const texts = [...new Set(some.map(textOf))];
      const index = indexOf(texts, 2);
      for (const text of [...texts, ...others.map(textOf)]) {
        const expected = text.length === 2 ? texts.indexOf(text) : -1;
        expect(index.find(Buffer.from(text, "latin1"), 0, text.length)).toBe(expected);
      }
    }),
  );
});

it("compares a few keys for each, whichever have been chosen", () => {
  const sameSum = Array.from({ length: 1000 }, (_, i) =>
    textOf([i & 255, 255 - (i & 255), i >> 8, 255 - (i >> 8), 0, 0, 0, 0, 0, 0, 0, 0]),
  );
  for (const chosen of [sameSum, sameInFnv(1000)]) {
    expect(new Set(chosen).size).toBe(1000);
    const index = indexOf(chosen, length);
    const { bytes, reads } = countReads(Buffer.from(chosen.join(""), "latin1"));
    for (let i = 0; i < chosen.length; i++) expect(index.find(bytes, i * length, (i + 1) * length)).toBe(i);
    // One pass for the hash, one for the comparison.
    expect(reads()).toBeLessThan(chosen.length * length * 10);
  }
});

function indexOf(keys: readonly string[], length: number): KeyIndex {
  const index = new KeyIndex(keys.length, length);
  for (const [i, key] of keys.entries()) index.add(i, key);
  return index;
}

function textOf(bytes: Iterable<number>): string {
  return String.fromCharCode(...bytes);
}

/** Keys whose FNV hashes lead to the same place in a table of 4096: the last bytes make up for the first ones. */
function sameInFnv(count: number): string[] {
  const found: string[] = [];
  for (let i = 0; found.length < count; i++) {
    const bytes = [i & 255, (i >> 8) & 255, (i >> 16) & 255, i >>> 24, 0, 0, 0, 0, 0, 0];
    let hash = 0;
    for (const byte of bytes) hash = Math.imul(hash ^ byte, 16777619);
    for (let last = 0; last < 65_536 && found.length < count; last++) {
      const end = Math.imul(Math.imul(hash ^ (last >> 8), 16777619) ^ (last & 255), 16777619);
      if (((end ^ (end >>> 15)) & 0xfff) === 0) found.push(textOf([...bytes, last >> 8, last & 255]));
    }
  }
  return found;
}

function countReads(buffer: Buffer): { readonly bytes: Uint8Array; readonly reads: () => number } {
  let count = 0;
  const bytes = new Proxy(buffer, {
    get(target, name) {
      count++;
      return target[name as unknown as number];
    },
  });
  return { bytes, reads: () => count };
}
