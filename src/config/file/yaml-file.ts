// A YAML or JSON file as maps, read by Go's rules, with the place of every field.
import {
  type CollectionTag,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  type ScalarTag,
} from "yaml";

/** The position of a field in the file, by its dotted path: `proxy.yaml:12:3`; null when it is not in the file. */
export type Locate = (path: string) => string | null;

export type YamlFile =
  | {
      readonly ok: true;
      /** Mappings are Maps, whole numbers are bigints. Of a repeated key the last value counts. */
      readonly root: unknown;
      readonly locate: Locate;
      /** Repeated keys, in sentences. */
      readonly notices: readonly string[];
    }
  | { readonly ok: false; readonly errors: readonly string[] };

/** Of several documents in one file only the first counts. An empty file has the root null. */
export function readYamlFile(text: string, fileName: string): YamlFile {
  const lines = new LineCounter();
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${fileName}:${line}:${col}`;
  };
  const document = firstDocument(text, lines);
  const strange = text.search(unreadable);
  if (strange >= 0) {
    const what = text[strange] === "\ufffd" ? "is not text in UTF-8" : "control characters are not allowed";
    return { ok: false, errors: [`${place(strange)}: ${what}`] };
  }
  const fault = jsonFault(text);
  if (fault !== null) return { ok: false, errors: [`${fileName}: begins like JSON, but is none: ${fault}`] };
  if (document === null) return { ok: true, root: null, locate: () => null, notices: [] };
  if (document.errors.length > 0) {
    return {
      ok: false,
      errors: document.errors.map(({ pos, message }) => `${place(pos[0])}: ${oneLine(message)}`),
    };
  }
  const locate: Locate = (path) => {
    const offset = offsetOf(document, path.split("."));
    return offset === null ? null : place(offset);
  };
  try {
    const root: unknown = document.toJS({ mapAsMap: true, maxAliasCount: 100 });
    return { ok: true, root, locate, notices: repeatedFields(document, place) };
  } catch (error) {
    // Aliases without an anchor, or so many that the document would explode.
    return {
      ok: false,
      errors: [`${fileName}: ${error instanceof Error ? oneLine(error.message) : String(error)}`],
    };
  }
}

/** What Go's reader refuses; U+FFFD replaces bytes that are not valid UTF-8. */
const unreadable = /[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffc\u{10000}-\u{10ffff}]/u;

/** To YAML a comment in JSON, for one, would be part of the next name. */
function jsonFault(text: string): string | null {
  if (!/^[ \t\r\n]*\{/.test(text)) return null;
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return oneLine((error as Error).message);
  }
}

function firstDocument(text: string, lineCounter: LineCounter): Document.Parsed | null {
  const documents = parseAllDocuments(text, {
    version: "1.1",
    uniqueKeys: false,
    intAsBigInt: true,
    prettyErrors: false,
    lineCounter,
    logLevel: "silent",
    customTags: (tags) => tags.filter(isKnownToGo).map(withGoNumbers),
  });
  return "empty" in documents ? null : documents[0]!;
}

/** kube-proxy's reader follows YAML 1.1 (`yes`, `0777`) without its times and base-60 numbers. */
function isKnownToGo(tag: string | CollectionTag | ScalarTag): boolean {
  return typeof tag === "string" || (tag.format !== "TIME" && !tag.tag.endsWith(":timestamp"));
}

/** Neither `.` nor `e3` is a number. */
function withGoNumbers<T extends string | CollectionTag | ScalarTag>(tag: T): T {
  const test = typeof tag === "object" && "test" in tag && tag.tag.endsWith(":float") ? tag.test : undefined;
  if (typeof tag !== "object" || test === undefined || !(test.test(".") || test.test("e3"))) return tag;
  return { ...tag, test: new RegExp(`(?=^[-+]?[.]?[0-9])${test.source}`) };
}

/** Reported once for each repeated key; the last one counts. */
function repeatedFields(document: Document.Parsed, place: (offset: number) => string): string[] {
  const notices: string[] = [];
  visit(document.contents, "");
  return notices;

  function visit(node: unknown, prefix: string): void {
    if (!isMap(node)) return;
    const seen = new Set<string>();
    for (const { key, value } of node.items) {
      const path = `${prefix}${isScalar(key) ? String(key.value) : ""}`;
      if (seen.has(path)) {
        const at = isScalar(key) && key.range ? place(key.range[0]) : place(0);
        notices.push(`${at}: field ${JSON.stringify(path)} is given more than once; the last one counts`);
      }
      seen.add(path);
      visit(value, `${path}.`);
    }
  }
}

/** Where the key, or the item of a list, begins. */
function offsetOf(document: Document.Parsed, steps: readonly string[]): number | null {
  let node: unknown = document.contents;
  let offset: number | null = null;
  for (const step of steps) {
    if (isAlias(node)) node = node.resolve(document);
    const [key, value] = childOf(node, step);
    if (!isScalar(key) || !key.range) return null;
    offset = key.range[0];
    node = value;
  }
  return offset;
}

function childOf(node: unknown, step: string): readonly [key: unknown, value: unknown] {
  if (isSeq(node)) return [node.items[Number(step)], null];
  if (!isMap(node)) return [null, null];
  const pair = node.items.findLast(({ key }) => isScalar(key) && String(key.value) === step);
  return [pair?.key, pair?.value];
}

function oneLine(message: string): string {
  return message.replace(/\s+/g, " ").trim();
}
