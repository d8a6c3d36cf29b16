// The shape every stored object has, and small readers for the parts that are plain data.

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

/** What a writer hands in: everything the server fills in may be missing. */
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

/** Those of a list that are; none when it is no list. */
export function mapsIn(list: unknown): Record<string, unknown>[] {
  return Array.isArray(list) ? list.filter(isMap) : [];
}

/** The value of a map's own key: what every object inherits, such as `constructor`, is not in it. */
export function own<T>(map: { readonly [key: string]: T } | undefined, key: string): T | undefined {
  return map !== undefined && Object.hasOwn(map, key) ? map[key] : undefined;
}

/** Sets a key whatever its name is: assigning to `__proto__` would change the prototype instead. */
export function setOwn(map: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(map, key, { value, enumerable: true, writable: true, configurable: true });
}

/** Whether these labels have all that a selector wants. */
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

/** Identity within its resource: `namespace/name`, or `/name` where there are no namespaces. */
export function keyOf(object: {
  readonly metadata: { readonly name: string; readonly namespace?: string };
}): string {
  return `${object.metadata.namespace ?? ""}/${object.metadata.name}`;
}
