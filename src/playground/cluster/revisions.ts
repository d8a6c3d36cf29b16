// The templates a Deployment has had, kept as ReplicaSets: `kubectl rollout history` and `undo` read them. Pure.
import { createHash } from "node:crypto";
import { type ApiObject, type Draft, dig, isMap } from "../api/object.ts";

export const hashLabel = "pod-template-hash";
const revisionAnnotation = "deployment.kubernetes.io/revision";
const causeAnnotation = "kubernetes.io/change-cause";

export type Revisions = {
  /** The ReplicaSets as they should be. */
  readonly keep: readonly (Draft & { readonly kind: "ReplicaSet" })[];
  readonly forget: readonly ApiObject[];
  /** Annotations of the Deployment. */
  readonly annotations: Readonly<Record<string, string>>;
};

/** `known`: its ReplicaSets; `alive`: its Pods that do not end. */
export function revisionsOf(
  set: ApiObject,
  known: readonly ApiObject[],
  alive: readonly ApiObject[],
): Revisions {
  const hash = templateHash(templateOf(set, known));
  const latest = Math.max(0, ...known.map(numberOf));
  const mine = known.find((each) => hashOf(each) === hash);
  const isLatest = mine !== undefined && numberOf(mine) === latest;
  const number = isLatest ? latest : latest + 1;
  const others = known.filter((each) => each !== mine).sort((a, b) => numberOf(b) - numberOf(a));
  const limit = Number(dig(set, "spec.revisionHistoryLimit") ?? 10);
  const old = others.filter((each, i) => i < limit || podsOf(each, alive) > 0);
  return {
    keep: [
      replicaSet(set, templateOf(set, known), hash, number, alive),
      ...old.map((each) => ({
        ...each,
        kind: "ReplicaSet" as const,
        ...counts(hashOf(each), alive, 0, each.spec),
      })),
    ],
    forget: others.filter((each) => !old.includes(each)),
    annotations: { ...annotationsOf(set), [revisionAnnotation]: String(number) },
  };
}

/** The template its Pods should have: while it is paused, that of the last revision. */
export function templateOf(set: ApiObject, known: readonly ApiObject[]): unknown {
  const latest = [...known].sort((a, b) => numberOf(b) - numberOf(a))[0];
  return dig(dig(set, "spec.paused") === true && latest !== undefined ? latest : set, "spec.template");
}

function replicaSet(
  set: ApiObject,
  template: unknown,
  hash: string,
  number: number,
  alive: readonly ApiObject[],
): Draft & { readonly kind: "ReplicaSet" } {
  const { name, namespace, uid } = set.metadata;
  const { metadata, spec } = isMap(template) ? template : {};
  const labels = { ...(dig(metadata, "labels") as object), [hashLabel]: hash };
  const cause = annotationsOf(set)[causeAnnotation];
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name: `${name}-${hash}`,
      ...(namespace === undefined ? {} : { namespace }),
      labels,
      annotations: {
        [revisionAnnotation]: String(number),
        ...(cause === undefined ? {} : { [causeAnnotation]: cause }),
      },
      ownerReferences: [{ apiVersion: "apps/v1", kind: "Deployment", name, uid, controller: true }],
    },
    ...counts(hash, alive, Number(dig(set, "spec.replicas") ?? 1), {
      selector: { matchLabels: labels },
      template: { metadata: { ...(isMap(metadata) ? metadata : {}), labels }, spec },
    }),
  };
}

function counts(hash: string, alive: readonly ApiObject[], replicas: number, spec: unknown) {
  const pods = alive.filter(({ metadata }) => metadata.labels?.[hashLabel] === hash).length;
  return {
    spec: { ...(spec as object), replicas },
    status: { replicas: pods, readyReplicas: pods, availableReplicas: pods },
  };
}

function podsOf(each: ApiObject, alive: readonly ApiObject[]): number {
  return alive.filter(({ metadata }) => metadata.labels?.[hashLabel] === hashOf(each)).length;
}

function annotationsOf({ metadata }: ApiObject): Record<string, string> {
  return isMap(metadata.annotations) ? (metadata.annotations as Record<string, string>) : {};
}

function numberOf(each: ApiObject): number {
  return Number(annotationsOf(each)[revisionAnnotation] ?? 0);
}

function hashOf({ metadata }: ApiObject): string {
  return metadata.labels?.[hashLabel] ?? "";
}

/** The same for templates that say the same: order, empty fields and the hash itself do not count. */
export function templateHash(template: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(canonical(template)) ?? "")
    .digest("hex")
    .slice(0, 10);
}

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (!isMap(value)) return value;
  const kept = Object.entries(value)
    .map(([name, each]) => [name, canonical(each)] as const)
    .filter(([name, each]) => name !== hashLabel && each !== null && !isEmpty(each))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(kept);
}

function isEmpty(value: unknown): boolean {
  return isMap(value) && Object.keys(value).length === 0;
}
