// Kubernetes objects as tests write them, and how they become the cluster's state.
import type { ApiServer } from "../../src/playground/api/server.ts";

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

const kinds = ["Node", "ServiceCIDR", "Service", "EndpointSlice"] as const;

/** Makes these the only objects; watchers are told the difference. */
export function replaceObjects(api: ApiServer, objects: readonly KubeObject[]): void {
  const kept = new Set(objects.map(identity));
  for (const object of objects) api.put(object);
  for (const object of kinds.flatMap((kind) => api.list(kind)))
    if (!kept.has(identity(object)))
      api.remove(object.kind, object.metadata.namespace ?? "", object.metadata.name);
}

function identity({ kind, metadata: { namespace = "", name } }: KubeObject): string {
  return `${kind}/${namespace}/${name}`;
}
