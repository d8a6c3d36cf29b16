// How objects stand side by side in a text that a program wrote, so that some can be read without the others.
import type { Located } from "./any-yaml.ts";
import { kindOfItems } from "./unfold.ts";
import { space } from "./yaml-cursor.ts";

export type ListText = {
  /** Where the first item begins, with its indentation. */
  readonly from: number;
  /** The line of the first item. */
  readonly line: number;
  /** What stands where one item ends, after so many bytes, and the next begins, after so many. */
  readonly joint: Buffer;
  readonly end: number;
  readonly begin: number;
  /** Of the items, as far as what stands before them tells; empty when each tells its own. */
  readonly kind: string;
  /** Where the last item ends in the end of the text; -1 when nowhere. */
  endOfLast(bytes: Buffer): number;
  /** Whether what stands behind the items makes it a List of that kind. */
  isEndedBy(tail: string): boolean;
  /** Some items, side by side, the first of them on this line; null when they are none, or cannot be told. */
  read(bytes: Buffer, from: number, to: number, line: number): Items | null;
};

/** `lines`: how many further what follows stands. */
export type Items = { readonly items: readonly Located[]; readonly lines: number };

/** Takes the place of the items where it is asked what stands around them. */
export const mark = "here stand the items";

/** Of the items of this List; null when the mark does not stand for them. */
export function kindIn(value: unknown): string | null {
  const kind = kindOfItems(value);
  const items = kind === null ? [] : (value as { readonly items: readonly unknown[] }).items;
  return items.length === 1 && items[0] === mark ? kind : null;
}

export function indentAt(bytes: Buffer, from: number): string {
  let at = from;
  while (bytes[at] === space) at++;
  return " ".repeat(at - from);
}
