// Who owns which field of an object: told by every write, asked by `kubectl apply --server-side`, kept in managedFields.
import { isDeepStrictEqual } from "node:util";
import { Failure } from "./failure.ts";
import type { Field } from "./fields.ts";
import { lastApplied } from "./last-applied.ts";
import {
  difference,
  type FieldsV1,
  fromFieldsV1,
  leavesOf,
  merged,
  type Path,
  pathOf,
  pathText,
  toFieldsV1,
  without,
} from "./leaves.ts";
import { type Draft, isMap } from "./object.ts";

export type Writer = {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string;
};

type Owner = Writer & { readonly fields: ReadonlySet<Path> };

/** As it stands in metadata.managedFields. */
type Entry = Omit<Writer, "subresource"> & {
  readonly subresource?: string;
  readonly fieldsType: "FieldsV1";
  readonly fieldsV1: FieldsV1;
};

/** A write takes what it changes. `said`: as it was handed in; `next`: with what the server filled in. */
export function ownedAfter(
  schema: Field,
  old: Draft | null,
  said: Draft,
  next: Draft,
  writer: Writer,
): Draft {
  const told = said.metadata?.managedFields;
  const known = Array.isArray(told) && told.length > 0 ? ownersOf(said) : ownersOf(old);
  // Whose owners nobody counted from the beginning gets them with the first apply.
  if (old !== null && known.length === 0) return withOwners(next, []);
  const { changed, gone } = difference(leaves(old, schema), leaves(next, schema));
  const claimed = old === null ? notChosen(changed, leaves(said, schema)) : changed;
  const lost = new Set([...changed, ...gone]);
  const mine = known.find((owner) => isSame(owner, writer));
  const fields = new Set([...(mine?.fields ?? []), ...claimed].filter((path) => !gone.has(path)));
  const others = known.filter((owner) => owner !== mine).map((owner) => deprived(owner, lost));
  return withOwners(next, [...others, renewed(mine, writer, fields)]);
}

/** What a manager applies, over what is there; throws Failure where others own what it would change. */
export function applied(
  schema: Field,
  old: Draft | null,
  asked: Draft,
  writer: Writer,
  force: boolean,
): Draft {
  const known = old === null ? [] : ownersOrFirst(schema, old, writer);
  const mine = known.find((owner) => isSame(owner, writer));
  const others = known.filter((owner) => owner !== mine);
  const fields = new Set(leaves(asked, schema).keys());
  const whole = merged(old ?? {}, asked, schema) as Draft;
  const { changed } = difference(leaves(old, schema), leaves(whole, schema));
  const past = ownPast(schema, old, writer);
  const conflicts = others.flatMap((owner) =>
    [...owner.fields]
      .filter((path) => changed.has(path) && !past.has(path))
      .map((path) => ({ owner: ownerText(owner), field: pathText(path) })),
  );
  if (conflicts.length > 0 && !force) throw conflictWith(conflicts);
  const left = others.map((owner) => deprived(owner, changed));
  const leftOut = [...(mine?.fields ?? [])].filter(
    (path) => !fields.has(path) && !left.some((owner) => owner.fields.has(path)),
  );
  const next = without(whole, schema, new Set(leftOut)) as Draft;
  const { gone } = difference(leaves(whole, schema), leaves(next, schema));
  return withOwners(next, [...left.map((owner) => deprived(owner, gone)), renewed(mine, writer, fields)]);
}

/** Another form of an object, with the same owners. */
export function withOwnersOf(object: Draft, other: Draft): Draft {
  return withOwners(other, ownersOf(object));
}

/** What says who it is, and what the server alone writes, has no owner. */
const nobodys = new Set([
  pathOf("apiVersion"),
  pathOf("kind"),
  ...[
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "selfLink",
    "managedFields",
  ].map((name) => pathOf("metadata", name)),
]);

function leaves(object: Draft | null, schema: Field): Map<Path, unknown> {
  return new Map([...leavesOf(object ?? {}, schema)].filter(([path]) => !nobodys.has(path)));
}

/** The server chooses these when a Service is made; who did not say them does not own them. */
const chosen = /^f:status\b|f:(clusterIPs?|ipFamilies|ipFamilyPolicy|nodePort|healthCheckNodePort)$/;

function notChosen(paths: ReadonlySet<Path>, said: ReadonlyMap<Path, unknown>): Path[] {
  return [...paths].filter((path) => said.has(path) || !chosen.test(path));
}

function ownersOf(object: Draft | null): Owner[] {
  const entries = object?.metadata?.managedFields;
  return (Array.isArray(entries) ? entries : []).flatMap((entry: unknown): Owner[] => {
    if (!isMap(entry) || !isMap(entry.fieldsV1)) return [];
    const { fieldsV1, fieldsType: _, subresource = "", ...rest } = entry as Entry;
    return [{ ...rest, subresource, fields: new Set(fromFieldsV1(fieldsV1)) }];
  });
}

/** Before anybody applied, everything belongs to those who came before. */
function ownersOrFirst(schema: Field, old: Draft, { apiVersion, time }: Writer): Owner[] {
  const known = ownersOf(old);
  if (known.length > 0) return known;
  const first = {
    manager: "before-first-apply",
    operation: "Update",
    apiVersion,
    subresource: "",
    time,
  } as const;
  const fields = [...leaves(old, schema).keys()].filter((path) => !path.startsWith(pathOf("status")));
  return [{ ...first, fields: new Set(fields) }];
}

function isSame(a: Writer, b: Writer): boolean {
  return a.manager === b.manager && a.operation === b.operation && a.subresource === b.subresource;
}

function deprived(owner: Owner, lost: ReadonlySet<Path>): Owner {
  const fields = new Set([...owner.fields].filter((path) => !lost.has(path)));
  return { ...owner, fields };
}

/** Since when: who owns the same as before keeps the time. */
function renewed(mine: Owner | undefined, writer: Writer, fields: ReadonlySet<Path>): Owner {
  const time = mine !== undefined && isDeepStrictEqual(mine.fields, fields) ? mine.time : writer.time;
  return { ...writer, time, fields };
}

/** What kubectl applied from its own side and nobody changed since, it may change from the server's, whoever owns it. */
function ownPast(schema: Field, old: Draft | null, { manager, apiVersion }: Writer): ReadonlySet<Path> {
  const then = leaves(lastApplied(old, manager, apiVersion), schema);
  const now = leaves(old, schema);
  return new Set(
    [...then]
      .filter(([path, value]) => now.has(path) && isDeepStrictEqual(now.get(path), value))
      .map(([path]) => path),
  );
}

function withOwners(object: Draft, owners: readonly Owner[]): Draft {
  const { managedFields: _, ...metadata } = object.metadata ?? {};
  const entries = owners
    .filter(({ fields }) => fields.size > 0)
    .sort(
      (a, b) => compare(a.operation, b.operation) || compare(a.time, b.time) || compare(a.manager, b.manager),
    )
    .map(({ fields, subresource, ...rest }): Entry => {
      const entry = { ...rest, fieldsType: "FieldsV1", fieldsV1: toFieldsV1(fields) } as const;
      return subresource === "" ? entry : { ...entry, subresource };
    });
  return {
    ...object,
    metadata: entries.length === 0 ? metadata : { ...metadata, managedFields: entries },
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function ownerText({ manager, operation, apiVersion, subresource }: Owner): string {
  const where = subresource === "" ? "" : ` with subresource ${JSON.stringify(subresource)}`;
  return `${JSON.stringify(manager)}${where}${operation === "Apply" ? "" : ` using ${apiVersion}`}`;
}

type Conflict = { readonly owner: string; readonly field: string };

function conflictWith(conflicts: readonly Conflict[]): Failure {
  const sorted = [...conflicts].sort((a, b) => compare(a.owner, b.owner) || compare(a.field, b.field));
  const [first] = sorted;
  const owners = [...new Set(sorted.map(({ owner }) => owner))];
  const fieldsOf = (owner: string) =>
    sorted.filter((each) => each.owner === owner).map(({ field }) => `\n- ${field}`);
  const list =
    conflicts.length === 1 && first !== undefined
      ? `1 conflict: conflict with ${first.owner}: ${first.field}`
      : `${conflicts.length} conflicts: ${owners.map((owner) => `conflicts with ${owner}:${fieldsOf(owner).join("")}`).join("\n")}`;
  return new Failure(409, "Conflict", `Apply failed with ${list}`, {
    causes: sorted.map(({ owner, field }) => ({
      reason: "FieldManagerConflict",
      message: `conflict with ${owner}`,
      field,
    })),
  });
}
