// Admission: validation, defaults, and allocation for Services.
import type { Admit, CheckDelete } from "../api/admission-hooks.ts";
import { badRequest, Failure, notFound } from "../api/http/failure.ts";
import { type ApiObject, type Draft, isMap } from "../api/objects/object.ts";
import type { Resource } from "../api/objects/resources.ts";
import { admitService } from "./admit-service.ts";
import type { Spec } from "./service-shape.ts";
import { check } from "./validation.ts";

/** The state of the cluster that admission depends on. */
export type Existing = {
  readonly services: () => readonly ApiObject[];
  readonly hasNamespace: (name: string) => boolean;
};

export function admission({ services, hasNamespace }: Existing): Admit {
  return (resource, draft, old, strict) => {
    const { namespace } = draft.metadata ?? {};
    if (old === null && namespace !== undefined && !hasNamespace(namespace))
      throw notFound("namespaces", namespace);
    check(resource.kind, draft, old, strict);
    const tidy = { ...draft, metadata: withoutEmptyMaps(draft.metadata ?? {}) };
    return resource.kind === "Service" ? admitService(tidy, old, services()) : admitOther(resource, tidy);
  };
}

/** Empty labels and annotations count as absent. */
function withoutEmptyMaps(metadata: NonNullable<Draft["metadata"]>): NonNullable<Draft["metadata"]> {
  const isEmpty = (value: unknown) => isMap(value) && Object.keys(value).length === 0;
  return Object.fromEntries(Object.entries(metadata).filter(([, value]) => !isEmpty(value)));
}

function admitOther({ kind }: Resource, draft: Draft): Draft {
  const spec = isMap(draft.spec) ? draft.spec : {};
  switch (kind) {
    case "Namespace":
      return { ...draft, status: { phase: "Active" } };
    case "Endpoints":
      throw badRequest("Endpoints are generated from EndpointSlices; create an EndpointSlice instead");
    case "Deployment": {
      const template = isMap(spec.template) ? spec.template : {};
      return {
        ...draft,
        spec: { replicas: 1, ...spec, template: { ...template, spec: podSpec(template.spec) } },
      };
    }
    case "Pod":
      return { ...draft, spec: podSpec(draft.spec) };
    default:
      return draft;
  }
}

/** Defaults that kubectl expects. */
function podSpec(given: unknown): Spec {
  const spec = isMap(given) ? given : {};
  const containers = Array.isArray(spec.containers) ? spec.containers.filter(isMap) : [];
  return {
    restartPolicy: "Always",
    securityContext: {},
    ...spec,
    containers: containers.map(({ ports, ...container }) => ({
      ...container,
      ...(Array.isArray(ports)
        ? { ports: ports.filter(isMap).map((port) => ({ protocol: "TCP", ...port })) }
        : {}),
    })),
  };
}

/** The default namespace and the nodes cannot be deleted. */
export const checkDelete: CheckDelete = ({ kind, metadata: { name } }) => {
  if (kind === "Namespace" && name === "default")
    throw forbidden('namespaces "default" is forbidden: this namespace may not be deleted');
  if (kind === "Node")
    throw forbidden(
      `nodes ${JSON.stringify(name)} is forbidden: playground nodes cannot be deleted; to remove its pods: kubectl drain ${name}`,
    );
};

function forbidden(message: string): Failure {
  return new Failure(403, "Forbidden", message);
}
