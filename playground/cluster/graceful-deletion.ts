// The end of a Pod: it serves on for its grace period while it is marked as terminating, then it is gone.
import type { Terminate } from "../api/admission-hooks.ts";
import { type ApiObject, dig } from "../api/objects/object.ts";

/** Shorter than in a real cluster: somebody is watching. */
const defaultGraceSeconds = 5;

/** A day: a period without limit would lead to a date that cannot be written. */
const maxGraceSeconds = 86_400;

/** Pods that run linger; everything else goes at once. */
export function gracefulDeletion(now: () => number): Terminate {
  return (object, requested) => {
    if (object.kind !== "Pod" || dig(object, "spec.nodeName") === undefined) return null;
    const own = dig(object, "spec.terminationGracePeriodSeconds");
    const wanted = requested ?? (typeof own === "number" ? own : defaultGraceSeconds);
    const seconds = Math.min(wanted, maxGraceSeconds);
    if (seconds <= 0) return null;
    const end = Math.ceil(now() / 1000 + seconds) * 1000;
    // Who ends already does not end later.
    if (deletionTime(object) <= end) return object;
    const deletionTimestamp = new Date(end).toISOString().replace(/\.\d+Z$/, "Z");
    const metadata = { ...object.metadata, deletionTimestamp, deletionGracePeriodSeconds: seconds };
    return { ...object, metadata };
  };
}

/** When a Pod is gone, in milliseconds since 1970; never, as long as nobody deleted it. */
export function deletionTime({ metadata }: ApiObject): number {
  const { deletionTimestamp } = metadata;
  return typeof deletionTimestamp === "string" ? Date.parse(deletionTimestamp) : Number.POSITIVE_INFINITY;
}

export function isTerminating(pod: ApiObject): boolean {
  return deletionTime(pod) !== Number.POSITIVE_INFINITY;
}
