// The `/scale` subresource, which `kubectl scale` uses.
import { badRequest } from "../http/failure.ts";
import { type ApiObject, type Draft, dig, isMap } from "../objects/object.ts";

export function scaleOf(object: ApiObject) {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const labels = dig(object, "spec.selector.matchLabels");
  const selector = isMap(labels)
    ? Object.entries(labels)
        .map(([key, value]) => `${key}=${String(value)}`)
        .join(",")
    : "";
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: replicasOf(object) },
    status: { replicas: dig(object, "status.replicas") ?? 0, selector },
  };
}

/** The object with the replicas of a Scale. */
export function scaled(object: ApiObject, scale: unknown): Draft {
  const replicas = dig(scale, "spec.replicas");
  if (typeof replicas !== "number" || !Number.isInteger(replicas) || replicas < 0)
    throw badRequest("spec.replicas must be a whole number, 0 or more");
  const version = dig(scale, "metadata.resourceVersion");
  const metadata = { ...object.metadata, resourceVersion: typeof version === "string" ? version : "" };
  return { ...object, metadata, spec: { ...(object.spec as object), replicas } };
}

function replicasOf(object: ApiObject): number {
  const replicas = dig(object, "spec.replicas");
  return typeof replicas === "number" ? replicas : 1;
}
