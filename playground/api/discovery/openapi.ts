// The parts of OpenAPI that kubectl reads: `kubectl explain`, and support for server-side field validation.
import type { Field } from "../objects/fields.ts";
import { apiVersionOf, type Resource, resources } from "../objects/resources.ts";
import { schemas } from "../objects/schemas.ts";

/** The index of documents, or one of them; null for an unknown path. */
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
    components: {
      schemas: Object.fromEntries(
        served.map(({ kind, group, version: v }) => [
          `playground.${kind}`,
          { ...schemaOf(schemas[kind]!), "x-kubernetes-group-version-kind": [{ group, version: v, kind }] },
        ]),
      ),
    },
    paths: Object.fromEntries(
      served.map((resource) => [objectPath(resource), { patch: operation(resource) }]),
    ),
  };
}

function schemaOf(field: Field): object {
  const { list, description, ...one } = field;
  if (list)
    return { type: "array", description, items: schemaOf({ ...field, list: false, description: "" }) };
  const about = description === "" ? {} : { description };
  switch (one.type) {
    case "string":
    case "integer":
    case "boolean":
      return { ...about, type: one.type, ...(one.values.length === 0 ? {} : { enum: one.values }) };
    case "integer or string":
      return { ...about, type: "string", format: "int-or-string" };
    case "map":
      return { ...about, type: "object", additionalProperties: { type: "string" } };
    case "anything":
      return { ...about, type: "object" };
    case "object": {
      const all = Object.entries(one.fields);
      const needed = all.filter(([, { required }]) => required).map(([name]) => name);
      return {
        ...about,
        type: "object",
        ...(needed.length === 0 ? {} : { required: needed }),
        properties: Object.fromEntries(all.map(([name, field_]) => [name, schemaOf(field_)])),
      };
    }
  }
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
    parameters: ["dryRun", "fieldValidation"].map(parameter),
    responses: {},
    "x-kubernetes-group-version-kind": { group, version, kind },
  };
}
