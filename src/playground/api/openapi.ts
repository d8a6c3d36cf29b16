// Just enough OpenAPI for `kubectl` to leave the validation of fields to the server.
import { apiVersionOf, type Resource, resources } from "./resources.ts";

/** The index of documents, or one of them; null when there is none. */
export function openApiAnswer(path: string): unknown {
  const versions = [...new Set(resources.map(apiVersionOf))];
  if (path === "/openapi/v3") {
    const documents = versions.map((version) => [
      pathOf(version),
      { serverRelativeURL: `/openapi/v3/${pathOf(version)}` },
    ]);
    return { paths: Object.fromEntries(documents) };
  }
  const version = versions.find((candidate) => path === `/openapi/v3/${pathOf(candidate)}`);
  if (version === undefined) return null;
  const served = resources.filter((resource) => apiVersionOf(resource) === version);
  return {
    openapi: "3.0.0",
    info: { title: "Turnout playground", version: "v1.37.0" },
    components: { schemas: {} },
    paths: Object.fromEntries(
      served.map((resource) => [objectPath(resource), { patch: operation(resource) }]),
    ),
  };
}

function pathOf(version: string): string {
  return version.includes("/") ? `apis/${version}` : `api/${version}`;
}

function objectPath(resource: Resource): string {
  const where = resource.namespaced ? "namespaces/{namespace}/" : "";
  return `/${pathOf(apiVersionOf(resource))}/${where}${resource.plural}/{name}`;
}

function operation({ group, version, kind }: Resource) {
  const parameter = (name: string) => ({ name, in: "query", schema: { type: "string" } });
  return {
    parameters: ["dryRun", "fieldManager", "fieldValidation"].map(parameter),
    responses: {},
    "x-kubernetes-group-version-kind": { group, version, kind },
  };
}
