// How the items of a List stand in a text that a program wrote: one below the other, all indented alike.
import type { Located } from "./any-yaml.ts";
import { readPlainYaml } from "./plain-yaml.ts";
import { kindOfItems } from "./unfold.ts";
import { newline, openBrace, space } from "./yaml-cursor.ts";

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
  /** Of the items; empty when each tells its own. */
  readonly kind: string;
  /** Some items, side by side, with lines counted from 0; null when they are none, or cannot be told. */
  read(from: number, to: number): readonly Located[] | null;
  /** How many lines further what follows stands. */
  lines(from: number, to: number): number;
};

/** Null when it is no List, or stands there in another way. */
export function listText(bytes: Buffer): ListText | null {
  return bytes[0] === openBrace ? jsonList(bytes) : yamlList(bytes);
}

const mark = "here stand the items";

/** All of it counts as one line, as where it is read in one piece. */
function jsonList(bytes: Buffer): ListText | null {
  const opening = '"items": [\n';
  const from = bytes.indexOf(opening) + opening.length;
  const indent = indentAt(bytes, from);
  const last = `\n${indent}}`;
  const to = bytes.lastIndexOf(`${last}\n`) + last.length;
  if (from < opening.length || to < from) return null;
  const kind = kindIn(parsed(`${bytes.toString("utf8", 0, from)}"${mark}"${bytes.toString("utf8", to)}`));
  if (kind === null) return null;
  return {
    bytes,
    from,
    to,
    line: 1,
    joint: Buffer.from(`${last},\n${indent}{`),
    end: last.length,
    begin: `${last},\n`.length,
    kind,
    read(first, behind) {
      const values = parsed(`[${bytes.toString("utf8", first, behind)}]`) as readonly unknown[] | null;
      return values?.map((value) => ({ value, line: 0 })) ?? null;
    },
    lines: () => 0,
  };
}

function yamlList(bytes: Buffer): ListText | null {
  const opening = "items:\n";
  const from = bytes.indexOf(opening) + opening.length;
  const indent = indentAt(bytes, from);
  const joint = `\n${indent}- `;
  const to = endOfLast(bytes, bytes.lastIndexOf(joint), indent.length);
  if (from < opening.length || to < from) return null;
  const around = [bytes.toString("utf8", 0, from), `${indent}- ${mark}`, bytes.toString("utf8", to)];
  const kind = kindIn(onlyRoot(around.join(""))?.value);
  if (kind === null) return null;
  return {
    bytes,
    from,
    to,
    line: linesIn(bytes, 0, from) + 1,
    joint: Buffer.from(joint),
    end: 0,
    begin: 1,
    kind,
    read(first, behind) {
      const root = onlyRoot(`${opening}${bytes.toString("utf8", first, behind)}\n`);
      if (root?.items === undefined || Object.keys(root.value as object).length !== 1) return null;
      return root.items.map((item) => moved(item, -2));
    },
    lines: (first, behind) => linesIn(bytes, first, behind) + 1,
  };
}

function moved({ value, line, items }: Located, by: number): Located {
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
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Of the items of this List; null when the mark does not stand for them. */
function kindIn(value: unknown): string | null {
  const kind = kindOfItems(value);
  const items = kind === null ? [] : (value as { readonly items: readonly unknown[] }).items;
  return items.length === 1 && items[0] === mark ? kind : null;
}
