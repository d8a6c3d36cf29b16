// Graceful deletion: a terminating Pod keeps serving until its grace period ends.
import type { Terminate } from "../api/admission-hooks.ts";
import { type ApiObject, dig } from "../api/objects/object.ts";

/** Shorter than in a real cluster, for interactive use. */
const defaultGraceSeconds = 5;

/** A day. Without a limit the deletion time could exceed the range of dates. */
const maxGraceSeconds = 86_400;

/** Running Pods get a grace period; other objects are deleted immediately. */
export function gracefulDeletion(now: () => number): Terminate {
  return (object, requested) => {
    if (object.kind !== "Pod" || dig(object, "spec.nodeName") === undefined) return null;
    const own = dig(object, "spec.terminationGracePeriodSeconds");
    const wanted = requested ?? (typeof own === "number" ? own : defaultGraceSeconds);
    const seconds = Math.min(wanted, maxGraceSeconds);
    if (seconds <= 0) return null;
    const end = Math.ceil(now() / 1000 + seconds) * 1000;
    // A second deletion cannot extend the grace period.
    if (deletionTime(object) <= end) return object;
    const deletionTimestamp = new Date(end).toISOString().replace(/\.\d+Z$/, "Z");
    const metadata = { ...object.metadata, deletionTimestamp, deletionGracePeriodSeconds: seconds };
    return { ...object, metadata };
  };
}

/** End of the grace period in milliseconds since 1970; infinite for a Pod that is not terminating. */
export function deletionTime({ metadata }: ApiObject): number {
  const { deletionTimestamp } = metadata;
  return typeof deletionTimestamp === "string" ? Date.parse(deletionTimestamp) : Number.POSITIVE_INFINITY;
}

export function isTerminating(pod: ApiObject): boolean {
  return deletionTime(pod) !== Number.POSITIVE_INFINITY;
}
