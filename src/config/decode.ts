// A configuration file to fields: strict about types, lenient about unknown and repeated fields, with line and column.
import {
  type CollectionTag,
  type Document,
  isAlias,
  isMap,
  isScalar,
  LineCounter,
  parseAllDocuments,
  type ScalarTag,
} from "yaml";
import { closest } from "./closest.ts";
import { apiVersion, kind } from "./config.ts";
import { withDefaults } from "./defaults.ts";
import { type FileConfig, fieldAt, type Path, paths } from "./fields.ts";
import { kinds } from "./kinds.ts";

/** Where a field stands in the file: `proxy.yaml:12:3`; null when it does not stand there itself. */
export type Locate = (path: string) => string | null;

export type Decoded =
  | {
      readonly ok: true;
      readonly config: FileConfig;
      readonly notices: readonly string[];
      readonly locate: Locate;
    }
  /** Each line names the place, the field, the rule, and what to write instead. */
  | { readonly ok: false; readonly errors: readonly string[] };

/** Reads YAML or JSON. Of several documents in one file only the first counts. */
export function decodeConfig(text: string, fileName: string): Decoded {
  const lines = new LineCounter();
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${fileName}:${line}:${col}`;
  };
  const document = firstDocument(text, lines);
  if (document === null) return { ok: false, errors: [`${fileName}: the file is empty: ${headerAdvice}`] };
  if (document.errors.length > 0) {
    return {
      ok: false,
      errors: document.errors.map(({ pos, message }) => `${place(pos[0])}: ${oneLine(message)}`),
    };
  }
  const root = toMaps(document);
  if (!(root instanceof Map))
    return { ok: false, errors: [`${fileName}: must be a mapping: ${headerAdvice}`] };
  const locate: Locate = (path) => {
    const offset = offsetOf(document, path.split("."));
    return offset === null ? null : place(offset);
  };
  const header = headerError(root);
  if (header !== null)
    return { ok: false, errors: [`${locate(header.field) ?? fileName}: ${header.message}`] };
  return fieldsOf(root, repeatedFields(document, place), (path) => locate(path) ?? fileName, locate);
}

const headerAdvice = `start it with "apiVersion: ${apiVersion}" and "kind: ${kind}"`;

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

function toMaps(document: Document.Parsed): unknown {
  try {
    return document.toJS({ mapAsMap: true, maxAliasCount: 100 });
  } catch {
    // Aliases without an anchor, or so many that the document would explode.
    return null;
  }
}

function headerError(root: ReadonlyMap<unknown, unknown>): { field: string; message: string } | null {
  const [foundKind, foundVersion] = [root.get("kind"), root.get("apiVersion")];
  if (typeof foundKind !== "string" || foundKind === "") {
    return { field: "kind", message: `kind is missing: ${headerAdvice}` };
  }
  if (typeof foundVersion !== "string" || foundVersion === "") {
    return { field: "apiVersion", message: `apiVersion is missing: ${headerAdvice}` };
  }
  if (foundVersion !== apiVersion) {
    return {
      field: "apiVersion",
      message: `apiVersion is ${JSON.stringify(foundVersion)}, which is not known: write "${apiVersion}"`,
    };
  }
  if (foundKind !== kind) {
    return {
      field: "kind",
      message: `kind is ${JSON.stringify(foundKind)}, which is not for this program: write "${kind}"`,
    };
  }
  return null;
}

function fieldsOf(
  root: ReadonlyMap<unknown, unknown>,
  repeated: readonly string[],
  place: (path: string) => string,
  locate: Locate,
): Decoded {
  const values = new Map<Path, unknown>();
  const errors: string[] = [];
  const notices = [...repeated];
  visit(root, "");
  if (errors.length > 0) return { ok: false, errors };
  return { ok: true, config: withDefaults(values), notices, locate };

  function visit(section: ReadonlyMap<unknown, unknown>, prefix: string): void {
    for (const [key, raw] of section) {
      const path = `${prefix}${String(key)}`;
      if (isPath(path)) leaf(path, raw);
      else if (isSection(path)) {
        if (raw instanceof Map) visit(raw, `${path}.`);
        else if (raw !== null)
          errors.push(`${place(path)}: ${path} must be a section with fields of its own`);
      } else if (prefix !== "" || (path !== "kind" && path !== "apiVersion"))
        notices.push(unknown(path, place(path)));
    }
  }

  function leaf(path: Path, raw: unknown): void {
    if (raw === null || raw === undefined) return;
    const decoded = kinds[fieldAt(path).kind].decode(raw, (message) => {
      notices.push(`${place(path)}: ${path}: ${message}, which is ignored`);
    });
    if (decoded.ok) values.set(path, decoded.value);
    else errors.push(`${place(path)}: ${path}: ${decoded.reason}`);
  }
}

function unknown(path: string, place: string): string {
  const name = JSON.stringify(path.length > 100 ? `${path.slice(0, 100)}…` : path);
  const guess = closest(path, [...paths, ...sections]);
  return `${place}: unknown field ${name} is ignored${guess === null ? "" : `; did you mean ${JSON.stringify(guess)}?`}`;
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

function offsetOf(document: Document.Parsed, steps: readonly string[]): number | null {
  let node: unknown = document.contents;
  let offset: number | null = null;
  for (const step of steps) {
    if (isAlias(node)) node = node.resolve(document);
    if (!isMap(node)) return null;
    const pair = node.items.findLast(({ key }) => isScalar(key) && String(key.value) === step);
    if (pair === undefined || !isScalar(pair.key) || !pair.key.range) return null;
    offset = pair.key.range[0];
    node = pair.value;
  }
  return offset;
}

const pathSet: ReadonlySet<string> = new Set(paths);
const sections: ReadonlySet<string> = new Set(
  paths.flatMap((path) => {
    const steps = path.split(".").slice(0, -1);
    return steps.map((_, i) => steps.slice(0, i + 1).join("."));
  }),
);

function isPath(path: string): path is Path {
  return pathSet.has(path);
}

function isSection(path: string): boolean {
  return sections.has(path);
}

function oneLine(message: string): string {
  return message.replace(/\s+/g, " ").trim();
}
