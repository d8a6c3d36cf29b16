// How the items of a List stand in a text that a program wrote: one below the other, all indented alike.
import type { Located } from "./any-yaml.ts";
import { readPlainYaml } from "./plain-yaml.ts";
import { kindOfItems } from "./unfold.ts";
import { newline, openBrace, space } from "./yaml-cursor.ts";

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
  read(bytes: Buffer, from: number, to: number, line: number): readonly Located[] | null;
  /** How many lines further what follows stands. */
  lines(bytes: Buffer, from: number, to: number): number;
};

/** By how the text begins. Null when it is no List, or stands there in another way. */
export function listText(beginning: Buffer): ListText | null {
  return beginning[0] === openBrace ? jsonList(beginning) : yamlList(beginning);
}

const mark = "here stand the items";

/** All of it counts as one line, as where it is read in one piece. */
function jsonList(beginning: Buffer): ListText | null {
  const opening = '"items": [\n';
  const from = beginning.indexOf(opening) + opening.length;
  if (from < opening.length) return null;
  const indent = indentAt(beginning, from);
  const last = `\n${indent}}`;
  const head = `${beginning.toString("utf8", 0, from)}"${mark}"`;
  const kind = kindIn(parsed(`${head}]}`)) ?? "";
  return {
    from,
    line: 1,
    joint: Buffer.from(`${last},\n${indent}{`),
    end: last.length,
    begin: `${last},\n`.length,
    kind,
    endOfLast(bytes) {
      const at = bytes.lastIndexOf(`${last}\n`);
      return at === -1 ? -1 : at + last.length;
    },
    isEndedBy: (tail) => kindIn(parsed(head + tail)) === kind,
    read(bytes, first, behind, line) {
      const values = parsed(`[${bytes.toString("utf8", first, behind)}]`) as readonly unknown[] | null;
      return values?.map((value) => ({ value, line })) ?? null;
    },
    lines: () => 0,
  };
}

function yamlList(beginning: Buffer): ListText | null {
  const opening = "items:\n";
  const from = beginning.indexOf(opening) + opening.length;
  if (from < opening.length) return null;
  const indent = indentAt(beginning, from);
  const joint = `\n${indent}- `;
  const head = `${beginning.toString("utf8", 0, from)}${indent}- ${mark}`;
  const kind = kindIn(onlyRoot(head)?.value) ?? "";
  return {
    from,
    line: linesIn(beginning, 0, from) + 1,
    joint: Buffer.from(joint),
    end: 0,
    begin: 1,
    kind,
    // The first item of all has no joint before it.
    endOfLast: (bytes) => endOfItem(bytes, Math.max(bytes.lastIndexOf(joint), 0), indent.length),
    isEndedBy: (tail) => kindIn(onlyRoot(head + tail)?.value) === kind,
    read(bytes, first, behind, line) {
      const root = onlyRoot(`${opening}${bytes.toString("utf8", first, behind)}\n`);
      if (root?.items === undefined || Object.keys(root.value as object).length !== 1) return null;
      return root.items.map((item) => moved(item, line - 2));
    },
    lines: (bytes, first, behind) => linesIn(bytes, first, behind) + 1,
  };
}

function moved({ value, line, items }: Located, by: number): Located {
  if (items === undefined) return { value, line: line + by };
  return { value, line: line + by, items: items.map((item) => moved(item, by)) };
}

/** Where a line begins that is indented no further than the dash of the item that starts here. */
function endOfItem(bytes: Buffer, last: number, indent: number): number {
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
