// Reads the text of one file: YAML with many documents or JSON, Lists unfolded, each object with its line.
import { isMap, isSeq, LineCounter, type Node, parseAllDocuments } from "yaml";
import { identify } from "../../manifests/identity.ts";
import { type Kind, kinds } from "../../manifests/objects.ts";
import { type Problem, quoted } from "../../model/problem.ts";

export type FileObject = {
  readonly kind: Kind;
  /** Identity across files: kind, namespace, name. */
  readonly key: string;
  readonly object: unknown;
  /** `a.yaml:12` */
  readonly place: string;
};

/** broken: nothing of the file can be trusted, it may be half written. */
export type ParsedFile =
  | { readonly kind: "good"; readonly objects: readonly FileObject[]; readonly problems: readonly Problem[] }
  | { readonly kind: "broken"; readonly problem: Problem };

export function parseManifests(path: string, text: string): ParsedFile {
  const roots = text.trimStart().startsWith("{")
    ? (jsonRoot(text) ?? yamlRoots(path, text))
    : yamlRoots(path, text);
  if (!Array.isArray(roots)) return { kind: "broken", problem: roots };
  const objects: FileObject[] = [];
  const problems: Problem[] = [];
  for (const root of roots) unfold(root, "", `${path}:`, objects, problems);
  return { kind: "good", objects, problems };
}

/** A value in the file, with its line and, for a List, those of its items; without items: as their List. */
type Located = { readonly value: unknown; readonly line: number; readonly items?: readonly Located[] };

/** Null when it is not JSON after all; the YAML reader then says where. */
function jsonRoot(text: string): Located[] | null {
  try {
    return [{ value: JSON.parse(text), line: 1 }];
  } catch {
    return null;
  }
}

function yamlRoots(path: string, text: string): Located[] | Problem {
  const lines = new LineCounter();
  const roots: Located[] = [];
  for (const document of parseAllDocuments(text, { lineCounter: lines, merge: true, prettyErrors: false })) {
    const [error] = document.errors;
    if (error) return broken(path, lines.linePos(error.pos[0]).line, error.message);
    if (document.contents === null) continue;
    try {
      const value: unknown = document.toJS({ maxAliasCount: 100 });
      if (value !== null) roots.push(locate(document.contents, value, lines));
    } catch (fault) {
      // Aliases that unfold into too much, or that point to nothing.
      return broken(path, lineOf(document.contents, lines), (fault as Error).message);
    }
  }
  return roots;
}

function locate(node: Node, value: unknown, lines: LineCounter): Located {
  const inner = isMap(node) ? node.get("items", true) : undefined;
  const values = isFields(value) && Array.isArray(value.items) ? value.items : [];
  const nodes = isSeq(inner) ? inner.items : [];
  const items = values.map((item: unknown, i) => locate((nodes[i] ?? node) as Node, item, lines));
  return { value, line: lineOf(node, lines), items };
}

function lineOf(node: Node, lines: LineCounter): number {
  return lines.linePos(node.range?.[0] ?? 0).line;
}

/** Adds an object, or all of a List; items of a `ServiceList` do not repeat their kind. */
function unfold(
  at: Located,
  assumed: string,
  prefix: string,
  objects: FileObject[],
  problems: Problem[],
): void {
  const place = `${prefix}${at.line}`;
  const complain = (message: string) => problems.push({ kind: "ignored", object: place, field: "", message });
  if (!isFields(at.value)) return void complain("is not an object and is ignored");
  const kind = at.value.kind ?? assumed;
  if (typeof kind !== "string" || kind === "") return void complain("has no kind and is ignored");
  if (kind.endsWith("List") && Array.isArray(at.value.items)) {
    const items = at.items ?? at.value.items.map((value: unknown) => ({ value, line: at.line }));
    for (const item of items) unfold(item, kind.slice(0, -"List".length), prefix, objects, problems);
    return;
  }
  const known = kinds.find((candidate) => candidate === kind);
  const apiVersion = typeof at.value.apiVersion === "string" ? at.value.apiVersion : "";
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  // Others may have kinds of the same name: a Service of another group is not ours.
  if (known === undefined || (apiVersion !== "" && group !== apis[known].group)) return;
  if (apiVersion !== "" && !apis[known].versions.includes(version)) {
    return void complain(`is of version ${quoted(version)} of ${known}, which is not read`);
  }
  const object = withNamespace(known, at.value);
  objects.push({ kind: known, key: `${known} ${identify(known, object).key}`, object, place });
}

const apis: Readonly<Record<Kind, { readonly group: string; readonly versions: readonly string[] }>> = {
  Service: { group: "", versions: ["v1"] },
  Node: { group: "", versions: ["v1"] },
  EndpointSlice: { group: "discovery.k8s.io", versions: ["v1"] },
  ServiceCIDR: { group: "networking.k8s.io", versions: ["v1", "v1beta1"] },
};

/** As kubectl would: without a namespace of its own an object belongs to `default`. */
function withNamespace(kind: Kind, object: Fields): unknown {
  if (kind === "Node" || kind === "ServiceCIDR") return object;
  const metadata = isFields(object.metadata) ? object.metadata : null;
  if (metadata === null || (metadata.namespace !== undefined && metadata.namespace !== null)) return object;
  return { ...object, metadata: { ...metadata, namespace: "default" } };
}

function broken(path: string, line: number, message: string): Problem {
  const text = message.split("\n")[0]!.replace(/\p{Cc}/gu, "?");
  return {
    kind: "unreadable",
    object: `${path}:${line}`,
    field: "",
    message: `cannot be read: ${text}`,
  };
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
