// An object as a set of fields that can each have an owner: list them, merge and remove by them, write them as FieldsV1.
import { isDeepStrictEqual } from "node:util";
import { anything, type Field, type Keys } from "./fields.ts";
import { isMap } from "./object.ts";

/** A path, in the words of FieldsV1: `f:spec`, `f:ports`, `k:{"port":80,"protocol":"TCP"}`, joined. */
export type Path = string;
const joint = "\u0000";

/** Every field that can have an owner, with its value; entries of keyed lists are such fields themselves. */
export function leavesOf(value: unknown, field: Field, path: Path = ""): Map<Path, unknown> {
  const parts = partsOf(value, field) ?? [];
  const leaves = new Map<Path, unknown>(parts.length === 0 && path !== "" ? [[path, value]] : []);
  for (const { name, value: inner, field: one } of parts) {
    const at = below(path, name);
    if (isEntry(name)) leaves.set(at, null);
    for (const [each, leaf] of leavesOf(inner, one, at)) leaves.set(each, leaf);
  }
  return leaves;
}

/** The fields that are new or different, and those that are gone. */
export function difference(before: ReadonlyMap<Path, unknown>, after: ReadonlyMap<Path, unknown>) {
  const isSame = (path: Path, value: unknown) =>
    before.has(path) && isDeepStrictEqual(before.get(path), value);
  return {
    changed: new Set([...after].filter(([path, value]) => !isSame(path, value)).map(([path]) => path)),
    gone: new Set([...before.keys()].filter((path) => !after.has(path))),
  };
}

/** What is there, with what somebody asks for put over it. */
export function merged(there: unknown, asked: unknown, field: Field): unknown {
  const [old, parts] = [partsOf(there, field), partsOf(asked, field)];
  if (old === null || parts === null) return asked;
  const result = new Map(old.map(({ name, value }) => [name, value]));
  for (const { name, value, field: one } of parts) result.set(name, merged(result.get(name), value, one));
  if (!Array.isArray(asked)) return whole(result);
  // New entries keep their place in front of the one that follows them.
  const order = old.map(({ name }) => name);
  for (const [i, { name }] of [...parts.entries()].reverse()) {
    const next = parts[i + 1];
    if (!order.includes(name)) order.splice(next ? order.indexOf(next.name) : order.length, 0, name);
  }
  return order.map((name) => result.get(name));
}

/** Without these fields, and without what is empty when they are gone. */
export function without(value: unknown, field: Field, gone: ReadonlySet<Path>, path: Path = ""): unknown {
  const parts = partsOf(value, field) ?? [];
  if (parts.length === 0) return gone.has(path) ? undefined : value;
  const left = parts.flatMap(({ name, value: inner, field: one }): [string, unknown][] => {
    const at = below(path, name);
    const rest = isEntry(name) && gone.has(at) ? undefined : without(inner, one, gone, at);
    return rest === undefined ? [] : [[name, rest]];
  });
  if (left.length === 0) return undefined;
  return Array.isArray(value) ? left.map(([, rest]) => rest) : whole(new Map(left));
}

/** Nested objects, as in metadata.managedFields. */
export type FieldsV1 = { [part: string]: FieldsV1 };

export function toFieldsV1(paths: Iterable<Path>): FieldsV1 {
  const root: FieldsV1 = {};
  const at = (path: Path) =>
    path.split(joint).reduce((node, part) => {
      node[part] ??= {};
      return node[part];
    }, root);
  const nodes = [...paths].sort().map(at);
  for (const node of nodes) if (Object.keys(node).length > 0) node["."] = {};
  return root;
}

export function fromFieldsV1(tree: unknown, path: Path = ""): Path[] {
  const parts = Object.entries(isMap(tree) ? tree : {});
  const inner = parts.filter(([name]) => name !== ".");
  const own = path !== "" && inner.length === parts.length && parts.length > 0 ? [] : [path];
  return [...own, ...inner.flatMap(([name, each]) => fromFieldsV1(each, below(path, name)))].filter(Boolean);
}

/** `.spec.ports[port=80,protocol="TCP"].name`. */
export function pathText(path: Path): string {
  const keysText = (json: string) =>
    Object.entries(JSON.parse(json) as object)
      .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
      .join(",");
  return path
    .split(joint)
    .map((part) => (isEntry(part) ? `[${keysText(part.slice(2))}]` : `.${part.slice(2)}`))
    .join("");
}

export function pathOf(...names: readonly string[]): Path {
  return names.map((name) => `f:${name}`).join(joint);
}

type Part = { readonly name: string; readonly value: unknown; readonly field: Field };

/** null: it has one owner as a whole. */
function partsOf(value: unknown, field: Field): Part[] | null {
  if (field.keys !== null) {
    const { keys } = field;
    const entry: Field = { ...field, keys: null, list: false };
    const entries = Array.isArray(value) ? value.filter(isMap) : [];
    return entries.map((each) => ({ name: `k:${keyText(each, keys)}`, value: each, field: entry }));
  }
  if (!isMap(value) || field.whole || field.list) return null;
  // What is null counts as absent.
  const given = Object.entries(value).filter(([, each]) => each !== null && each !== undefined);
  return given.map(([name, each]) => ({
    name: `f:${name}`,
    value: each,
    field: (Object.hasOwn(field.fields, name) ? field.fields[name] : undefined) ?? anything(""),
  }));
}

function keyText(entry: Readonly<Record<string, unknown>>, keys: Keys): string {
  return JSON.stringify(
    Object.fromEntries(Object.entries(keys).map(([name, otherwise]) => [name, entry[name] ?? otherwise])),
  );
}

function isEntry(name: string): boolean {
  return name.startsWith("k:");
}

function below(path: Path, name: string): Path {
  return path === "" ? name : path + joint + name;
}

function whole(parts: ReadonlyMap<string, unknown>): object {
  return Object.fromEntries([...parts].map(([name, value]) => [name.slice(2), value]));
}
