// The JSON Schema of the configuration file, for editors; made from the table of fields.
import { apiVersion, kind } from "../config.ts";
import { defaultOf, fieldAt, type Path, paths } from "../file/fields.ts";
import { kinds } from "../file/kinds.ts";
import { gates } from "../gates/table.ts";

type Schema = Readonly<Record<string, unknown>>;

export function configSchema(): Schema {
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: `${kind} ${apiVersion}`,
    description: "Configuration file of kube-proxy v1.37 and of Turnout.",
    type: "object",
    additionalProperties: false,
    required: ["apiVersion", "kind"],
    properties: { apiVersion: { const: apiVersion }, kind: { const: kind }, ...propertiesUnder("") },
  };
}

/** The fields and sections directly under a prefix. */
function propertiesUnder(prefix: string): Schema {
  const names = paths
    .filter((path) => path.startsWith(prefix))
    .map((path) => path.slice(prefix.length).split(".")[0]!);
  return Object.fromEntries([...new Set(names)].map((name) => [name, schemaOf(`${prefix}${name}`)]));
}

function schemaOf(path: string): Schema {
  const field = paths.find((known) => known === path);
  if (field !== undefined) return fieldSchema(field);
  return { type: ["object", "null"], additionalProperties: false, properties: propertiesUnder(`${path}.`) };
}

function fieldSchema(path: Path): Schema {
  const { kind: type, about, values, defaultText } = fieldAt(path);
  return {
    description: about,
    ...kinds[type].schema,
    ...(path === "featureGates" ? { properties: gateSchemas(), additionalProperties: false } : {}),
    ...(values === undefined ? {} : { enum: values }),
    ...(defaultText === undefined ? { default: defaultOf(path) } : {}),
  };
}

function gateSchemas(): Schema {
  return Object.fromEntries(
    [...gates].map(([name, { stage, on, locked, about }]) => [
      name,
      {
        description: about ?? `No effect here (${stage}).`,
        ...(locked ? { const: on } : { type: "boolean" }),
      },
    ]),
  );
}
