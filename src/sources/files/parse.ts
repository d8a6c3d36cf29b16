// Reads the text of one file: YAML with many documents or JSON, Lists unfolded, each object with its line.
import { identify } from "../../manifests/identity.ts";
import type { Kind } from "../../manifests/objects.ts";
import { type Problem, quoted } from "../../model/problem.ts";
import { type Flaw, type Located, readYaml } from "./any-yaml.ts";
import type { ListReader } from "./list-reader.ts";
import { readPlainYaml } from "./plain-yaml.ts";

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

/** With a `reader`, Lists that are much like one it knows are read quickly. */
export function parseManifests(path: string, bytes: Buffer, reader?: ListReader): ParsedFile {
  const list = reader?.read(bytes) ?? null;
  const roots = list === null ? readText(bytes.toString("utf8")) : [list];
  if ("message" in roots) return { kind: "broken", problem: broken(path, roots) };
  const objects: FileObject[] = [];
  const problems: Problem[] = [];
  for (const root of roots) unfold(root, "", `${path}:`, objects, problems);
  return { kind: "good", objects, problems };
}

function readText(text: string): readonly Located[] | Flaw {
  return readJson(text) ?? readPlainYaml(text) ?? readYaml(text);
}

/** Null when it is not JSON, or not after all; the YAML reader then says where. */
function readJson(text: string): Located[] | null {
  if (!text.trimStart().startsWith("{")) return null;
  try {
    return [{ value: JSON.parse(text), line: 1 }];
  } catch {
    return null;
  }
}

/** Adds an object, or all of a List; items of a `ServiceList` do not repeat their kind. */
function unfold(
  at: Located,
  assumed: string,
  prefix: string,
  objects: FileObject[],
  problems: Problem[],
): void {
  const { value } = at;
  const place = `${prefix}${at.line}`;
  if (!isFields(value)) return void problems.push(ignored(place, "is not an object and is ignored"));
  const kind = value.kind ?? assumed;
  if (typeof kind !== "string" || kind === "")
    return void problems.push(ignored(place, "has no kind and is ignored"));
  if (kind.endsWith("List") && Array.isArray(value.items)) {
    const items = at.items ?? value.items.map((item: unknown) => ({ value: item, line: at.line }));
    for (const item of items) unfold(item, kind.slice(0, -"List".length), prefix, objects, problems);
    return;
  }
  if (!isKind(kind)) return;
  const { apiVersion } = value;
  if (typeof apiVersion === "string" && apiVersion !== "" && !apiVersions[kind].includes(apiVersion)) {
    const { group, version } = partsOf(apiVersion);
    // Others may have kinds of the same name: a Service of another group is not ours.
    if (group !== partsOf(apiVersions[kind][0]!).group) return;
    problems.push(ignored(place, `is of version ${quoted(version)} of ${kind}, which is not read`));
    return;
  }
  const object = withNamespace(kind, value);
  objects.push({ kind, key: `${kind} ${identify(kind, object).key}`, object, place });
}

function ignored(place: string, message: string): Problem {
  return { kind: "ignored", object: place, field: "", message };
}

const apiVersions: Readonly<Record<Kind, readonly string[]>> = {
  Service: ["v1"],
  Node: ["v1"],
  EndpointSlice: ["discovery.k8s.io/v1"],
  ServiceCIDR: ["networking.k8s.io/v1", "networking.k8s.io/v1beta1"],
};

function isKind(kind: string): kind is Kind {
  return Object.hasOwn(apiVersions, kind);
}

/** `discovery.k8s.io/v1`; without a slash the group is the core one, whose name is empty. */
function partsOf(apiVersion: string): { readonly group: string; readonly version: string } {
  const slash = apiVersion.lastIndexOf("/");
  return { group: apiVersion.slice(0, Math.max(slash, 0)), version: apiVersion.slice(slash + 1) };
}

/** As kubectl would: without a namespace of its own an object belongs to `default`. */
function withNamespace(kind: Kind, object: Fields): unknown {
  if (kind === "Node" || kind === "ServiceCIDR") return object;
  const metadata = isFields(object.metadata) ? object.metadata : null;
  if (metadata === null || (metadata.namespace !== undefined && metadata.namespace !== null)) return object;
  return { ...object, metadata: { ...metadata, namespace: "default" } };
}

function broken(path: string, { line, message }: Flaw): Problem {
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
