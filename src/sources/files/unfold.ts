// The objects in a file: Lists are expanded, and each object is read into the model.
import { closest } from "../../config/closest.ts";
import { type Identity, identify, identity, isNamespaced } from "../../manifests/identity.ts";
import type { Kind } from "../../manifests/objects.ts";
import { type Reading, readObject } from "../../manifests/reading.ts";
import { quoted } from "../../model/problem.ts";
import { checkFields, type Finding } from "./check.ts";
import type { Located, Place } from "./documents.ts";
import { isBuiltInGroup, isBuiltInKind } from "./known-kinds.ts";

export type Found = {
  readonly objects: readonly FoundObject[];
  readonly ignored: readonly Ignored[];
  /** Fields and values that Kubernetes does not have. */
  readonly invalid: readonly Finding[];
};

export type FoundObject = {
  /** Identity across files: kind, namespace, name. */
  readonly key: string;
  readonly reading: Reading;
  readonly place: Place;
};

/** A document that should be one of our objects and is not. */
export type Ignored = { readonly place: Place; readonly message: string };

/** Lists in Lists are unfolded as far as this; kubectl writes none. */
const deepestList = 10;

export function unfold(values: readonly Located[]): Found {
  const found: Findings = { objects: [], ignored: [], invalid: [] };
  for (const value of values) add(value, "", found, deepestList);
  return found;
}

/** `a.yaml:12`, or `a.json, item 3`. */
export function placeIn(path: string, place: Place): string {
  return "line" in place ? `${path}:${place.line}` : `${path}, item ${place.item + 1}`;
}

type Findings = {
  readonly objects: FoundObject[];
  readonly ignored: Ignored[];
  readonly invalid: Finding[];
};

/** `assumed`: the kind of what has none of its own, as the items of a `ServiceList` have not; empty when unknown. */
function add({ value, place, path, items }: Located, assumed: string, found: Findings, levels: number): void {
  const ofItems = kindOfItems(value, assumed);
  if (ofItems !== null) {
    if (levels === 0)
      return void found.ignored.push({ place, message: "is nested too deeply and is ignored" });
    const values = (value as { readonly items: readonly unknown[] }).items;
    for (const item of items ??
      values.map((each, i) => ({ value: each, place, path: [...path, "items", i] })))
      add(item, ofItems, found, levels - 1);
    return;
  }
  const read = objectIn(value, assumed);
  if (typeof read === "string") found.ignored.push({ place, message: read });
  else if (read !== null) {
    found.objects.push({ key: `${read.kind} ${read.who.key}`, reading: read, place });
    for (const each of checkFields(read.who, value))
      found.invalid.push({ ...each, path: [...path, ...each.path] });
  }
}

/** What kind the items of a List are of; empty when each has its own, null when it is no List. */
function kindOfItems(value: unknown, assumed: string): string | null {
  if (!isFields(value) || !Array.isArray(value.items)) return null;
  const kind = value.kind ?? assumed;
  return typeof kind === "string" && kind.endsWith("List") ? kind.slice(0, -"List".length) : null;
}

/** Or why it is ignored; null when its kind is not used. */
function objectIn(value: unknown, assumed: string): Reading | string | null {
  if (!isFields(value)) return "is not an object and is ignored";
  const kind = value.kind ?? assumed;
  if (typeof kind !== "string" || kind === "") return "has no kind and is ignored";
  const apiVersion = typeof value.apiVersion === "string" ? value.apiVersion : "";
  const { group, version } = partsOf(apiVersion);
  if (!isKind(kind)) return isBuiltInKind(kind) || !isBuiltInGroup(group) ? null : unknownKind(kind);
  if (apiVersion !== "" && !apiVersions[kind].includes(apiVersion)) {
    if (group === partsOf(apiVersions[kind][0]!).group)
      return `is of version ${quoted(version)} of ${kind}, which is not read`;
    // Custom resources may have kinds of the same name: a Service of Knative is not ours.
    if (!isBuiltInGroup(group)) return null;
    return `is of ${quoted(apiVersion)}, which has no ${kind}, and is ignored; did you mean ${apiVersions[kind][0]}?`;
  }
  return readObject(identityOf(kind, value), value);
}

function unknownKind(kind: string): string {
  const near = closest(kind, Object.keys(apiVersions));
  return `is of unknown kind ${quoted(kind)} and is ignored${near === null ? "" : `; did you mean ${near}?`}`;
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
function identityOf(kind: Kind, object: Fields): Identity {
  const who = identify(kind, object);
  const { metadata } = object;
  const hasOwn = !isFields(metadata) || (metadata.namespace ?? null) !== null;
  return hasOwn || !isNamespaced(kind) ? who : identity(kind, "default", who.name);
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
