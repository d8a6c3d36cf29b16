// The type of stored objects, and helpers to read untyped data.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** An object as the API stores it. Never changed in place: a write stores a new one. */
export type ApiObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
  readonly [field: string]: unknown;
};

export type Metadata = {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
};

/** An object as a client sends it: fields that the server sets may be absent. */
export type Draft = {
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
};

export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The maps in a list; empty when the value is not a list. */
export function mapsIn(list: unknown): Record<string, unknown>[] {
  return Array.isArray(list) ? list.filter(isMap) : [];
}

/** The value of an own key; inherited names such as `constructor` are ignored. */
export function own<T>(map: { readonly [key: string]: T } | undefined, key: string): T | undefined {
  return map !== undefined && Object.hasOwn(map, key) ? map[key] : undefined;
}

/** Sets a key of any name; assigning to `__proto__` would change the prototype instead. */
export function setOwn(map: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(map, key, { value, enumerable: true, writable: true, configurable: true });
}

/** Whether the labels match a selector. */
export function hasLabels(labels: Metadata["labels"], wanted: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(wanted).every(([key, value]) => own(labels, key) === value);
}

/** The value at a dotted path; undefined when something on the way is missing. */
export function dig(value: unknown, path: string): unknown {
  let at = value;
  for (const name of path.split(".")) {
    if (!isMap(at)) return undefined;
    at = own(at, name);
  }
  return at;
}

/** A scalar as text; anything else is empty. */
export function scalar(value: unknown): string {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? `${value}`
    : "";
}

/** Key within its resource: `namespace/name`, or `/name` for cluster-scoped resources. */
export function keyOf(object: {
  readonly metadata: { readonly name: string; readonly namespace?: string };
}): string {
  return `${object.metadata.namespace ?? ""}/${object.metadata.name}`;
}
