// Reads any YAML, with the library; slowly, and with the line of what is wrong.
import { isMap, isSeq, LineCounter, type Node, parseAllDocuments } from "yaml";

/** A value in the file, with its line and, for a List, those of its items; without items: as their List. */
export type Located = { readonly value: unknown; readonly line: number; readonly items?: readonly Located[] };

export type Flaw = { readonly line: number; readonly message: string };

/** The documents that say something. */
export function readYaml(text: string): Located[] | Flaw {
  const lines = new LineCounter();
  const roots: Located[] = [];
  for (const document of parseAllDocuments(text, { lineCounter: lines, merge: true, prettyErrors: false })) {
    const [error] = document.errors;
    if (error) return { line: lines.linePos(error.pos[0]).line, message: error.message };
    if (document.contents === null) continue;
    try {
      const value: unknown = document.toJS({ maxAliasCount: 100 });
      if (value !== null) roots.push(locate(document.contents, value, lines));
    } catch (fault) {
      // Aliases that unfold into too much, or that point to nothing.
      return { line: lineOf(document.contents, lines), message: (fault as Error).message };
    }
  }
  return roots;
}

function locate(node: Node, value: unknown, lines: LineCounter): Located {
  const inner = isMap(node) ? node.get("items", true) : undefined;
  const values = itemsOf(value);
  const nodes = isSeq(inner) ? inner.items : [];
  const items = values.map((item: unknown, i) => locate((nodes[i] ?? node) as Node, item, lines));
  return { value, line: lineOf(node, lines), items };
}

function itemsOf(value: unknown): readonly unknown[] {
  const items = (value as { readonly items?: unknown } | null)?.items;
  return Array.isArray(items) ? items : [];
}

function lineOf(node: Node, lines: LineCounter): number {
  return lines.linePos(node.range?.[0] ?? 0).line;
}
