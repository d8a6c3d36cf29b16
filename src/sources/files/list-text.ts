// How the items of a List stand in a text that a program wrote: one below the other, all indented alike.
import type { Located } from "./any-yaml.ts";
import { readPlainYaml } from "./plain-yaml.ts";

export type ListText = {
  readonly bytes: Buffer;
  /** Where the first item begins, with its indentation, and where the last one ends. */
  readonly from: number;
  readonly to: number;
  /** The line of the first item. */
  readonly line: number;
  /** What stands where one item ends, after so many bytes, and the next begins, after so many. */
  readonly joint: Buffer;
  readonly end: number;
  readonly begin: number;
  /** Some items, side by side; null when they are none, or cannot be told. */
  read(from: number, to: number): Items | null;
  /** The List with its items; null when they are not its items after all. */
  around(items: readonly Located[]): Located | null;
};

/** With lines counted from 0, and how many lines there are. */
export type Items = { readonly items: readonly Located[]; readonly lines: number };

/** Null when it is no List, or stands there in another way. */
export function listText(bytes: Buffer): ListText | null {
  return bytes[0] === openBrace ? jsonList(bytes) : yamlList(bytes);
}

const openBrace = 123;
const newline = 10;
const space = 32;
const mark = "here stand the items";

/** All of it counts as one line, as where it is read in one piece. */
function jsonList(bytes: Buffer): ListText | null {
  const opening = '"items": [\n';
  const from = bytes.indexOf(opening) + opening.length;
  const indent = indentAt(bytes, from);
  const last = `\n${indent}}`;
  const to = bytes.lastIndexOf(`${last}\n`) + last.length;
  if (from < opening.length || to < from) return null;
  return {
    bytes,
    from,
    to,
    line: 1,
    joint: Buffer.from(`${last},\n${indent}{`),
    end: last.length,
    begin: `${last},\n`.length,
    read(first, behind) {
      const values = parsed(`[${bytes.toString("utf8", first, behind)}]`);
      return values === null
        ? null
        : { items: values.map((value: unknown) => ({ value, line: 0 })), lines: 0 };
    },
    around(items) {
      const value = parsed(`${bytes.toString("utf8", 0, from)}"${mark}"${bytes.toString("utf8", to)}`);
      return hasOnlyMark(value) ? { value, line: 1, items } : null;
    },
  };
}

function yamlList(bytes: Buffer): ListText | null {
  const opening = "items:\n";
  const from = bytes.indexOf(opening) + opening.length;
  const indent = indentAt(bytes, from);
  const joint = `\n${indent}- `;
  const to = endOfLast(bytes, bytes.lastIndexOf(joint), indent.length);
  if (from < opening.length || to < from) return null;
  return {
    bytes,
    from,
    to,
    line: linesIn(bytes, 0, from) + 1,
    joint: Buffer.from(joint),
    end: 0,
    begin: 1,
    read(first, behind) {
      const root = onlyRoot(`${opening}${bytes.toString("utf8", first, behind)}\n`);
      if (root?.items === undefined || Object.keys(root.value as object).length !== 1) return null;
      return { items: root.items.map((item) => moved(item, -2)), lines: linesIn(bytes, first, behind) + 1 };
    },
    around(items) {
      const [before, behind] = [bytes.toString("utf8", 0, from), bytes.toString("utf8", to)];
      const root = onlyRoot(`${before}${indent}- ${mark}${behind}`);
      return hasOnlyMark(root?.value) ? { ...root!, items } : null;
    },
  };
}

/** The same, some lines further down. */
export function moved({ value, line, items }: Located, by: number): Located {
  if (items === undefined) return { value, line: line + by };
  return { value, line: line + by, items: items.map((item) => moved(item, by)) };
}

/** Where a line begins that is indented no further than the dash of the item that starts here. */
function endOfLast(bytes: Buffer, last: number, indent: number): number {
  for (let at = bytes.indexOf(newline, last + 1); at !== -1; at = bytes.indexOf(newline, at + 1)) {
    const spaces = indentAt(bytes, at + 1).length;
    if (spaces <= indent && bytes[at + 1 + spaces] !== newline) return at;
  }
  return -1;
}

function indentAt(bytes: Buffer, from: number): string {
  let at = from;
  while (bytes[at] === space) at++;
  return " ".repeat(at - from);
}

function linesIn(bytes: Buffer, from: number, to: number): number {
  let lines = 0;
  for (let at = bytes.indexOf(newline, from); at !== -1 && at < to; at = bytes.indexOf(newline, at + 1))
    lines++;
  return lines;
}

function onlyRoot(text: string): Located | null {
  const roots = readPlainYaml(text);
  return roots?.length === 1 ? roots[0]! : null;
}

/** Null also when it is no JSON. */
// biome-ignore lint/suspicious/noExplicitAny: whoever asks looks.
function parsed(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function hasOnlyMark(value: unknown): boolean {
  const items = (value as { readonly items?: unknown } | null | undefined)?.items;
  return Array.isArray(items) && items.length === 1 && items[0] === mark;
}
