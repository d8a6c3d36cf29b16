// How objects stand in YAML: as the items of a List, all indented alike, or as documents of their own.
import type { Located } from "./any-yaml.ts";
import { indentAt, kindIn, type ListText, mark } from "./list-text.ts";
import { readPlainYaml } from "./plain-yaml.ts";
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
  read: (bytes, from, to, line) =>
    readPlainYaml(bytes.toString("utf8", from, to))?.map((root) => moved(root, line - 1)) ?? null,
  lines: (bytes, from, to) => linesIn(bytes, from, to) + 2,
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
