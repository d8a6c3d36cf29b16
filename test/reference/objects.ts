// Kubernetes objects as tests write them, and how they become the cluster's state.
import type { ApiServer } from "../../playground/api/server.ts";

export type KubeObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
};

export const allKinds = ["Node", "ServiceCIDR", "Service", "EndpointSlice"];

/** Makes these the only objects, or the only ones of some kinds; watches receive the difference. */
export function replaceObjects(api: ApiServer, objects: readonly KubeObject[], kinds = allKinds): void {
  const kept = new Set(objects.map(identity));
  for (const object of objects) if (kinds.includes(object.kind)) api.put(object);
  for (const object of kinds.flatMap((kind) => api.list(kind)))
    if (!kept.has(identity(object)))
      api.remove(object.kind, object.metadata.namespace ?? "", object.metadata.name);
}

function identity({ kind, metadata: { namespace = "", name } }: KubeObject): string {
  return `${kind}/${namespace}/${name}`;
}
