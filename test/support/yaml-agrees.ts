// The quick reader of YAML beside the library.
import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import { type Located, readYaml } from "../../src/sources/files/any-yaml.ts";
import { readPlainYaml } from "../../src/sources/files/plain-yaml.ts";

/** Whether the quick reader read it at all. */
export function agrees(text: string): boolean {
  const quick = readPlainYaml(text);
  if (quick === null) return false;
  const thorough = readYaml(text);
  if (!Array.isArray(thorough)) throw new Error(`should not be read, for: ${thorough.message}`);
  const [ours, theirs] = [quick.map(whole), thorough.map(whole)];
  // As text for the order of keys, as values for -0 and the like.
  expect(JSON.stringify(ours)).toBe(JSON.stringify(theirs));
  expect(isDeepStrictEqual(ours, theirs)).toBe(true);
  return true;
}

function whole({ value, line, items = [] }: Located): Located {
  return { value, line, items: items.map(whole) };
}
