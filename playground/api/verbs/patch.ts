// JSON patch, merge patch, and a subset of strategic merge patch.
import { badRequest, Failure } from "../http/failure.ts";
import { isMap, own, setOwn } from "../objects/object.ts";
import type { Resource } from "../objects/resources.ts";

/** Merge patch (RFC 7386): null removes, maps merge, everything else replaces. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isMap(patch)) return patch;
  const result: Record<string, unknown> = isMap(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else setOwn(result, name, mergePatch(own(result, name), value));
  }
  return result;
}

/** Like a merge patch, but lists with a merge key are merged by it. */
export function strategicPatch(resource: Resource, target: unknown, patch: unknown): unknown {
  if (!isMap(patch)) return patch;
  if (patch.$patch === "delete") return undefined;
  const { $patch, $retainKeys: _retained, ...fields } = patch;
  const result: Record<string, unknown> = isMap(target) && $patch !== "replace" ? { ...target } : {};
  for (const [name, value] of Object.entries(fields)) {
    // Directives for list order and for lists of scalars are not needed for these kinds.
    if (name.startsWith("$setElementOrder/") || name.startsWith("$deleteFromPrimitiveList/")) continue;
    const key = own(resource.mergeKeys, name);
    if (value === null) delete result[name];
    else if (Array.isArray(value) && key !== undefined)
      setOwn(result, name, mergeList(resource, own(result, name), value, key));
    else setOwn(result, name, strategicPatch(resource, own(result, name), value));
  }
  return result;
}

function mergeList(resource: Resource, target: unknown, patch: readonly unknown[], key: string): unknown[] {
  if (patch.some((entry) => isMap(entry) && entry.$patch === "replace")) {
    return patch.filter((entry) => !(isMap(entry) && entry.$patch === "replace"));
  }
  const result: unknown[] = Array.isArray(target) ? [...target] : [];
  // The first of several entries with the same key wins.
  const places = new Map<unknown, number>();
  for (const [i, old] of [...result.entries()].reverse()) if (isMap(old)) places.set(old[key], i);
  for (const entry of patch) {
    const at = isMap(entry) ? places.get(entry[key]) : undefined;
    const merged = strategicPatch(resource, at === undefined ? undefined : result[at], entry);
    if (at !== undefined) result[at] = merged;
    else if (merged !== undefined) {
      if (isMap(entry)) places.set(entry[key], result.length);
      result.push(merged);
    }
  }
  return result.filter((entry) => entry !== undefined);
}

type Operation = {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
};

/** The limits of the API server. */
const operationLimit = 10_000;
const copyLimit = 3 * 1024 * 1024;

/** JSON patch (RFC 6902). A failed test or a missing path refuses the whole patch. */
export function jsonPatch(target: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) throw badRequest("a JSON patch must be a list of operations");
  if (operations.length > operationLimit)
    throw tooLarge(
      `the allowed maximum operations in a JSON patch is ${operationLimit}, got ${operations.length}`,
    );
  let copied = 0;
  /** Limits exponential growth by copies of copies. */
  const copy: Copy = (value) => {
    const text = JSON.stringify(value);
    copied += text.length;
    if (copied > copyLimit)
      throw tooLarge(`the copy operations of a JSON patch may add at most ${copyLimit} bytes`);
    return JSON.parse(text) as unknown;
  };
  return operations
    .map(readOperation)
    .reduce((document, operation) => applyOperation(document, operation, copy), structuredClone(target));
}

type Copy = (value: unknown) => unknown;

function readOperation(given: unknown): Operation {
  const { op, path, from, value } = isMap(given) ? given : {};
  if (typeof op === "string" && typeof path === "string") {
    if (from === undefined) return { op, path, value };
    if (typeof from === "string") return { op, path, value, from };
  }
  const example = '{"op":"add","path":"/metadata/labels/app","value":"web"}';
  throw badRequest(
    `an operation must have an op and a path, for example ${example}, not ${JSON.stringify(given)?.slice(0, 200)}`,
  );
}

function applyOperation(document: unknown, { op, path, from, value }: Operation, copy: Copy): unknown {
  switch (op) {
    case "add":
      return write(document, pointer(path), value, "add");
    case "replace":
      read(document, pointer(path));
      return write(document, pointer(path), value, "replace");
    case "remove":
      return remove(document, pointer(path));
    case "move": {
      const moved = read(document, pointer(from ?? ""));
      return write(remove(document, pointer(from ?? "")), pointer(path), moved, "add");
    }
    case "copy":
      return write(document, pointer(path), copy(read(document, pointer(from ?? ""))), "add");
    case "test":
      if (JSON.stringify(read(document, pointer(path))) !== JSON.stringify(value)) {
        throw unprocessable(`testing path ${path} failed`);
      }
      return document;
    default:
      throw badRequest(`unexpected kind of operation: ${op}`);
  }
}

function pointer(path: string): string[] {
  if (path === "") return [];
  if (!path.startsWith("/")) throw badRequest(`not a JSON pointer: ${JSON.stringify(path)}`);
  const parts = path
    .slice(1)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  if (parts.includes("__proto__")) throw badRequest('the key "__proto__" is refused');
  return parts;
}

function read(document: unknown, path: readonly string[]): unknown {
  let at = document;
  for (const part of path) {
    const next = Array.isArray(at) ? at[indexIn(at, part)] : isMap(at) ? own(at, part) : undefined;
    if (next === undefined) throw unprocessable(`missing path /${path.join("/")}`);
    at = next;
  }
  return at;
}

function write(document: unknown, path: readonly string[], value: unknown, how: "add" | "replace"): unknown {
  if (path.length === 0) return value;
  const parent = read(document, path.slice(0, -1));
  const last = path.at(-1)!;
  if (Array.isArray(parent)) {
    const at = last === "-" ? parent.length : indexIn(parent, last);
    parent.splice(at, how === "replace" ? 1 : 0, value);
  } else if (isMap(parent)) setOwn(parent, last, value);
  else throw unprocessable(`missing path /${path.join("/")}`);
  return document;
}

function remove(document: unknown, path: readonly string[]): unknown {
  if (path.length === 0) throw unprocessable("the whole object cannot be removed");
  const parent = read(document, path.slice(0, -1));
  read(document, path);
  const last = path.at(-1)!;
  if (Array.isArray(parent)) parent.splice(indexIn(parent, last), 1);
  else if (isMap(parent)) delete parent[last];
  return document;
}

function indexIn(list: readonly unknown[], part: string): number {
  const index = /^(0|[1-9][0-9]*)$/.test(part) ? Number(part) : -1;
  if (index < 0 || index > list.length) throw unprocessable(`no index ${JSON.stringify(part)} in the list`);
  return index;
}

function tooLarge(message: string): Failure {
  return new Failure(413, "RequestEntityTooLarge", message);
}

function unprocessable(message: string): Failure {
  return new Failure(
    422,
    "Invalid",
    `the server rejected our request due to an error in our request: ${message}`,
  );
}
