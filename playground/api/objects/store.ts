// Stores objects and their history: a version counter, a log of changes, and compaction.
import { isDeepStrictEqual } from "node:util";
import { alreadyExists, conflict, expired, Failure, invalid, notFound } from "../http/failure.ts";
import { type ApiObject, type Draft, keyOf, type Metadata } from "./object.ts";
import { apiVersionOf, type Resource } from "./resources.ts";

export type Change = {
  readonly resource: Resource;
  readonly version: number;
  /** null: created. */
  readonly before: ApiObject | null;
  /** null: deleted. */
  readonly after: ApiObject | null;
};

export type StoreOptions = {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly uid: () => string;
};

const historyLimit = 10_000;

export class Store {
  readonly #options: StoreOptions;
  readonly #objects = new Map<Resource, Map<string, ApiObject>>();
  readonly #listeners = new Set<(change: Change) => void>();
  #history: Change[] = [];
  #version = 1;
  #compacted = 0;

  constructor(options: StoreOptions) {
    this.#options = options;
  }

  get version(): number {
    return this.#version;
  }

  /** The current time in the format of object metadata. */
  #time(): string {
    return new Date(this.#options.now()).toISOString().replace(/\.\d+Z$/, "Z");
  }

  get(resource: Resource, namespace: string, name: string): ApiObject {
    const found = this.#of(resource).get(`${namespace}/${name}`);
    if (!found) throw notFound(resource.plural, name);
    return found;
  }

  has(resource: Resource, namespace: string, name: string): boolean {
    return this.#of(resource).has(`${namespace}/${name}`);
  }

  /** All objects now, or as they were at an earlier version; sorted by key. */
  list(resource: Resource, at: number = this.#version): ApiObject[] {
    this.#checkVersion(at);
    const objects = new Map(this.#of(resource));
    for (let i = this.#history.length - 1; i >= 0 && this.#history[i]!.version > at; i--) {
      const change = this.#history[i]!;
      if (change.resource !== resource) continue;
      const key = keyOf((change.after ?? change.before)!);
      if (change.before) objects.set(key, change.before);
      else objects.delete(key);
    }
    return [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  /** The changes after a version, oldest first; throws 410 when they are compacted. */
  since(resource: Resource, version: number): Change[] {
    this.#checkVersion(version);
    return this.#history.filter((change) => change.resource === resource && change.version > version);
  }

  /** Whether the state at a version is still available. */
  hasVersion(version: number): boolean {
    return version >= this.#compacted;
  }

  /** `dry`: returns what would be stored, without a version. */
  create(resource: Resource, draft: Draft, dry = false): ApiObject {
    const name = draft.metadata?.name;
    if (!name)
      throw invalid(resource.kind, "", "Required value: name or generateName is required", "metadata.name");
    const namespace = resource.namespaced ? (draft.metadata?.namespace ?? "default") : undefined;
    if (this.#of(resource).has(`${namespace ?? ""}/${name}`)) throw alreadyExists(resource.plural, name);
    const created = {
      ...draft.metadata,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      uid: this.#options.uid(),
      ...(dry ? {} : { resourceVersion: this.#next() }),
      creationTimestamp: this.#time(),
    } as Metadata;
    const object = typed(resource, draft, created);
    return dry ? object : this.#commit(resource, null, object)!;
  }

  /** Replaces an object. An empty resourceVersion in the draft skips the version check. */
  update(resource: Resource, draft: Draft, dry = false): ApiObject {
    const name = draft.metadata?.name ?? "";
    const before = this.get(
      resource,
      resource.namespaced ? (draft.metadata?.namespace ?? "default") : "",
      name,
    );
    const expected = draft.metadata?.resourceVersion;
    if (typeof expected === "string" && expected !== "" && expected !== before.metadata.resourceVersion) {
      throw conflict(
        resource.plural,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
      );
    }
    const { uid, creationTimestamp, resourceVersion } = before.metadata;
    const kept: Metadata = { ...draft.metadata, ...namesOf(before), uid, creationTimestamp, resourceVersion };
    const after = typed(resource, draft, kept);
    if (dry || isDeepStrictEqual(after, before)) return after;
    return this.#commit(resource, before, {
      ...after,
      metadata: { ...kept, resourceVersion: this.#next() },
    })!;
  }

  /** Returns the last state, with the version of the deletion. */
  delete(resource: Resource, namespace: string, name: string): ApiObject {
    const before = this.get(resource, namespace, name);
    this.#next();
    this.#commit(resource, before, null);
    return withVersion(before, this.#version);
  }

  /** Drops all changes up to a version: older watches get 410. */
  compact(version: number = this.#version): void {
    this.#compacted = Math.max(this.#compacted, Math.min(version, this.#version));
    this.#history = this.#history.filter((change) => change.version > this.#compacted);
  }

  /** Restores an earlier version, including the counter, as a restored backup does. */
  restore(version: number): void {
    for (const change of this.#history.filter((candidate) => candidate.version > version).reverse()) {
      const key = keyOf((change.after ?? change.before)!);
      if (change.before) this.#of(change.resource).set(key, change.before);
      else this.#of(change.resource).delete(key);
    }
    this.#history = this.#history.filter((change) => change.version <= version);
    this.#version = version;
  }

  /** Calls back on every change until the returned function is called. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #of(resource: Resource): Map<string, ApiObject> {
    let objects = this.#objects.get(resource);
    if (!objects) {
      objects = new Map();
      this.#objects.set(resource, objects);
    }
    return objects;
  }

  #next(): string {
    return `${++this.#version}`;
  }

  #commit(resource: Resource, before: ApiObject | null, after: ApiObject | null): ApiObject | null {
    const change: Change = { resource, version: this.#version, before, after };
    const key = keyOf((after ?? before)!);
    if (after) this.#of(resource).set(key, after);
    else this.#of(resource).delete(key);
    this.#history.push(change);
    if (this.#history.length > 2 * historyLimit) this.compact(this.#history.at(-historyLimit)!.version);
    for (const listener of [...this.#listeners]) listener(change);
    return after;
  }

  #checkVersion(version: number): void {
    if (!this.hasVersion(version)) throw expired(`${version}`, this.#compacted);
    if (!Number.isSafeInteger(version)) throw new Failure(400, "BadRequest", "invalid resource version");
  }
}

export function withVersion(object: ApiObject, version: number): ApiObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: `${version}` } };
}

function namesOf(object: ApiObject) {
  const { name, namespace } = object.metadata;
  return namespace === undefined ? { name } : { name, namespace };
}

function typed(resource: Resource, draft: Draft, metadata: Metadata): ApiObject {
  const { apiVersion: _version, kind: _kind, metadata: _metadata, ...rest } = draft;
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata, ...rest };
}
