// The kinds this API serves: paths, scope, and selectable fields.
import { type ApiObject, dig } from "./object.ts";

export type Resource = {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Whether `status` is written through `/status` only, as in the real API. */
  readonly hasStatus: boolean;
  /** Whether `/scale` sets the number of replicas. */
  readonly hasScale?: boolean;
  readonly shortNames: readonly string[];
  /** Field selectors besides metadata.name and metadata.namespace. */
  readonly fields: readonly string[];
  /** Lists that a strategic merge patch merges by key instead of replacing. */
  readonly mergeKeys: Readonly<Record<string, string>>;
};

const plain = { group: "", version: "v1", namespaced: true, hasStatus: false, shortNames: [], fields: [] };
const commonKeys = { ownerReferences: "uid", conditions: "type" };

export const resources: readonly Resource[] = [
  {
    ...plain,
    plural: "services",
    kind: "Service",
    hasStatus: true,
    shortNames: ["svc"],
    fields: ["spec.clusterIP", "spec.type"],
    mergeKeys: { ...commonKeys, ports: "port" },
  },
  {
    ...plain,
    plural: "nodes",
    kind: "Node",
    namespaced: false,
    hasStatus: true,
    shortNames: ["no"],
    fields: ["spec.unschedulable"],
    mergeKeys: { ...commonKeys, addresses: "type" },
  },
  {
    ...plain,
    plural: "namespaces",
    kind: "Namespace",
    namespaced: false,
    hasStatus: true,
    shortNames: ["ns"],
    mergeKeys: commonKeys,
  },
  {
    ...plain,
    plural: "pods",
    kind: "Pod",
    hasStatus: true,
    shortNames: ["po"],
    fields: ["spec.nodeName", "status.phase", "status.podIP"],
    mergeKeys: {
      ...commonKeys,
      containers: "name",
      initContainers: "name",
      volumes: "name",
      env: "name",
      ports: "containerPort",
    },
  },
  {
    ...plain,
    group: "apps",
    plural: "deployments",
    kind: "Deployment",
    hasStatus: true,
    hasScale: true,
    shortNames: ["deploy"],
    mergeKeys: { ...commonKeys, containers: "name", ports: "containerPort", env: "name" },
  },
  {
    ...plain,
    group: "discovery.k8s.io",
    plural: "endpointslices",
    kind: "EndpointSlice",
    mergeKeys: { ownerReferences: "uid" },
  },
  {
    ...plain,
    group: "networking.k8s.io",
    plural: "servicecidrs",
    kind: "ServiceCIDR",
    namespaced: false,
    hasStatus: true,
    mergeKeys: commonKeys,
  },
  {
    ...plain,
    group: "events.k8s.io",
    plural: "events",
    kind: "Event",
    shortNames: ["ev"],
    fields: ["reason", "type", ...["name", "namespace", "kind", "uid"].map((each) => `regarding.${each}`)],
    mergeKeys: commonKeys,
  },
  // Events of the core group. A kind without a group means the first match, events.k8s.io.
  {
    ...plain,
    plural: "events",
    kind: "Event",
    shortNames: ["ev"],
    fields: [
      "reason",
      "type",
      ...["name", "namespace", "kind", "uid", "apiVersion", "resourceVersion", "fieldPath"].map(
        (each) => `involvedObject.${each}`,
      ),
    ],
    mergeKeys: commonKeys,
  },
  {
    ...plain,
    plural: "endpoints",
    kind: "Endpoints",
    shortNames: ["ep"],
    mergeKeys: {},
  },
];

export function apiVersionOf(resource: Pick<Resource, "group" | "version">): string {
  return resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
}

/** Without a version, the first match. */
export function resourceOfKind(kind: string, apiVersion?: string): Resource | undefined {
  const all = resources.filter((resource) => resource.kind === kind);
  return all.find((resource) => apiVersionOf(resource) === apiVersion) ?? all[0];
}

/** Value of a selectable field; null when the resource does not offer it. */
export function fieldValue(resource: Resource, field: string, object: ApiObject): string | null {
  const known =
    field === "metadata.name" || field === "metadata.namespace" || resource.fields.includes(field);
  if (!known) return null;
  const value = dig(object, field);
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? `${value}`
    : "";
}
