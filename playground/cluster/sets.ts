// Plans a Deployment: which Pods to create, which to delete, and its status. Pure.
import { createHash } from "node:crypto";
import { type ApiObject, type Draft, dig, isMap } from "../api/objects/object.ts";
import { isTerminating } from "./graceful-deletion.ts";

export type SetPlan = {
  readonly start: readonly (Draft & { readonly kind: string })[];
  readonly end: readonly ApiObject[];
  readonly status: object;
};

/** Identifies the template of a Pod. */
const hashLabel = "pod-template-hash";

/** `pods`: all Pods. Pods of an older template are deleted when enough new ones are ready. */
export function planSet(set: ApiObject, pods: readonly ApiObject[]): SetPlan {
  const replicas = Number(dig(set, "spec.replicas") ?? 1);
  const template = dig(set, "spec.template");
  const hash = templateHash(template);
  const alive = pods
    .filter((pod) => ownerOf(pod) === set.metadata.uid && !isTerminating(pod))
    .sort((a, b) => numberOf(a) - numberOf(b));
  const fresh = alive.filter(({ metadata }) => metadata.labels?.[hashLabel] === hash);
  const stale = alive.filter((pod) => !fresh.includes(pod));
  const replaced = fresh.slice(0, replicas).filter(isReady).length >= replicas;
  const ready = alive.filter(isReady).length;
  return {
    start: freeNames(set, pods, replicas - fresh.length).map((name) => podOf(set, name, template, hash)),
    end: [...fresh.slice(replicas), ...(replaced ? stale : [])],
    status: {
      replicas: alive.length,
      updatedReplicas: fresh.length,
      readyReplicas: ready,
      availableReplicas: ready,
      conditions: [
        {
          type: "Available",
          status: ready >= replicas ? "True" : "False",
          reason: "MinimumReplicasAvailable",
        },
      ],
    },
  };
}

/** The uid of the Deployment of a Pod. */
export function ownerOf(pod: ApiObject): string | null {
  const owners = dig(pod, "metadata.ownerReferences");
  const owner = Array.isArray(owners)
    ? owners.find((each) => isMap(each) && each.kind === "Deployment")
    : undefined;
  return isMap(owner) && typeof owner.uid === "string" ? owner.uid : null;
}

export function isReady(pod: ApiObject): boolean {
  const conditions = dig(pod, "status.conditions");
  return (
    Array.isArray(conditions) &&
    conditions.some((each) => isMap(each) && each.type === "Ready" && each.status === "True")
  );
}

/** `web-1`, `web-2`, …; the name of a terminating Pod is not reused. */
function freeNames(set: ApiObject, pods: readonly ApiObject[], count: number): string[] {
  const { name, namespace } = set.metadata;
  const taken = new Set(
    pods.filter(({ metadata }) => metadata.namespace === namespace).map(({ metadata }) => metadata.name),
  );
  const names: string[] = [];
  for (let number = 1; names.length < count; number++)
    if (!taken.has(`${name}-${number}`)) names.push(`${name}-${number}`);
  return names;
}

/** Copies only labels and annotations of the template; a deletionTimestamp would delete the Pod immediately. */
function podOf(
  set: ApiObject,
  name: string,
  template: unknown,
  hash: string,
): Draft & { readonly kind: string } {
  const { metadata, spec } = isMap(template) ? template : {};
  const { labels, annotations } = isMap(metadata) ? metadata : {};
  const { name: setName, namespace, uid } = set.metadata;
  return {
    kind: "Pod",
    metadata: {
      ...(isMap(annotations) ? { annotations } : {}),
      labels: { ...(isMap(labels) ? labels : {}), [hashLabel]: hash },
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ownerReferences: [{ apiVersion: "apps/v1", kind: "Deployment", name: setName, uid, controller: true }],
    },
    spec: isMap(spec) ? spec : {},
  };
}

function numberOf({ metadata }: ApiObject): number {
  return Number(/-(\d+)$/.exec(metadata.name)?.[1] ?? 0);
}

/** Equal for equal templates; ignores field order, empty fields and the hash label. */
function templateHash(template: unknown): string {
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
