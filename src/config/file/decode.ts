// A configuration file to fields: strict about types, lenient about unknown and repeated fields, with line and column.
import { closest } from "../closest.ts";
import { apiVersion, kind } from "../config.ts";
import { withDefaults } from "../defaults.ts";
import { type FileConfig, fieldAt, type Path, paths } from "./fields.ts";
import { kinds } from "./kinds.ts";
import { type Locate, readYamlFile, type YamlFile } from "./yaml-file.ts";

export type Decoded =
  | {
      readonly ok: true;
      readonly config: FileConfig;
      readonly notices: readonly string[];
      readonly locate: Locate;
    }
  /** Each line names the place, the field, the rule, and what to write instead. */
  | { readonly ok: false; readonly errors: readonly string[] };

export function decodeConfig(text: string, fileName: string): Decoded {
  const file = readYamlFile(text, fileName);
  if (!file.ok) return file;
  if (file.root === null) return refuse(`${fileName}: the file is empty: ${headerAdvice}`);
  if (!(file.root instanceof Map)) return refuse(`${fileName}: must be a mapping: ${headerAdvice}`);
  const header = headerError(file.root);
  if (header !== null) return refuse(`${file.locate(header.field) ?? fileName}: ${header.message}`);
  return fieldsOf(file.root, file, fileName);
}

const headerAdvice = `start it with "apiVersion: ${apiVersion}" and "kind: ${kind}"`;

function refuse(error: string): Decoded {
  return { ok: false, errors: [error] };
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
  { locate, notices: repeated }: YamlFile & { ok: true },
  fileName: string,
): Decoded {
  const place = (path: string) => locate(path) ?? fileName;
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
