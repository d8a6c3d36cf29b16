// How the items of a List stand in JSON: one below the other and all indented alike, or all on one line.
import { indentAt, kindIn, type ListText, mark } from "./list-text.ts";

/** By how the text begins. Null when it is no List, or stands there in another way. */
export function jsonText(beginning: Buffer): ListText | null {
  const form = spread(beginning) ?? onOneLine(beginning);
  if (form === null) return null;
  const { from, last, gap, first, behindLast } = form;
  const head = `${beginning.toString("utf8", 0, from)}"${mark}"`;
  const kind = kindIn(parsed(`${head}]}`)) ?? "";
  return {
    from,
    // All of it counts as one line, as where it is read in one piece.
    line: 1,
    joint: Buffer.from(last + gap + first),
    end: last.length,
    begin: last.length + gap.length,
    kind,
    endOfLast(bytes) {
      const at = bytes.lastIndexOf(last + behindLast);
      return at === -1 ? -1 : at + last.length;
    },
    isEndedBy: (tail) => kindIn(parsed(head + tail)) === kind,
    read(bytes, first, behind, line) {
      const values = parsed(`[${bytes.toString("utf8", first, behind)}]`) as readonly unknown[] | null;
      return values === null ? null : { items: values.map((value) => ({ value, line })), lines: 0 };
    },
  };
}

type Form = {
  /** Where the first item begins. */
  readonly from: number;
  /** What an item ends with, what stands between two, and what the next one begins with. */
  readonly last: string;
  readonly gap: string;
  readonly first: string;
  /** And behind the last of all. */
  readonly behindLast: string;
};

function spread(beginning: Buffer): Form | null {
  const from = behind(beginning, '"items": [\n');
  if (from === -1) return null;
  const indent = indentAt(beginning, from);
  return { from, last: `\n${indent}}`, gap: ",\n", first: `${indent}{`, behindLast: "\n" };
}

/** Nothing but its first key tells an item from what is inside of it. */
function onOneLine(beginning: Buffer): Form | null {
  const from = behind(beginning, '"items":[');
  const key = /^\{"\w+":/.exec(beginning.toString("latin1", from, from + 50));
  return from === -1 || key === null ? null : { from, last: "}", gap: ",", first: key[0], behindLast: "]" };
}

/** Where this is over; -1 when it is nowhere. */
function behind(bytes: Buffer, text: string): number {
  const at = bytes.indexOf(text);
  return at === -1 ? -1 : at + text.length;
}

/** Null also when it is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
