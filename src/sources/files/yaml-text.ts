// How objects stand in YAML: as the items of a List, all indented alike, or as documents of their own.
import type { Located } from "./any-yaml.ts";
import { type Items, indentAt, kindIn, type ListText, mark } from "./list-text.ts";
import { type PlainYaml, readDocuments, readItems, readPlainYaml } from "./plain-yaml.ts";
import { newline } from "./yaml-cursor.ts";

/** By how the text begins. Null when the objects stand there in another way. */
export function yamlText(beginning: Buffer): ListText | null {
  return beginning.includes(betweenDocuments) ? documents : yamlList(beginning);
}

const betweenDocuments = "\n---\n";

const documents: ListText = {
  from: 0,
  line: 1,
  joint: Buffer.from(betweenDocuments),
  end: 0,
  begin: betweenDocuments.length,
  kind: "",
  endOfLast: (bytes) => bytes.length,
  isEndedBy: () => true,
  read: (bytes, from, to, line) => placed(readDocuments(bytes.subarray(from, to + 1)), line, 1),
};

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
    line: beginning.toString("latin1", 0, from).split("\n").length,
    joint: Buffer.from(joint),
    end: 0,
    begin: 1,
    kind,
    // What is left of a piece may begin with the last item, and no joint before it.
    endOfLast: (bytes) => endOfItem(bytes, bytes.lastIndexOf(joint), indent.length),
    isEndedBy: (tail) => kindIn(onlyRoot(head + tail)?.value) === kind,
    read: (bytes, from, to, line) => placed(readItems(bytes.subarray(from, to + 1)), line, 0),
  };
}

/** `more`: lines that stand between these and what follows. */
function placed(found: PlainYaml | null, line: number, more: number): Items | null {
  if (found === null) return null;
  return { items: found.values.map((item) => moved(item, line - 1)), lines: found.lines + more };
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

function onlyRoot(text: string): Located | null {
  const roots = readPlainYaml(text);
  return roots?.length === 1 ? roots[0]! : null;
}
