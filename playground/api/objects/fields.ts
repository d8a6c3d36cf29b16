// Schemas as data: the source of `kubectl explain` and of validation.
import { closest } from "../../../src/config/closest.ts";
import { isMap, own } from "./object.ts";

type Type = "string" | "integer" | "boolean" | "integer or string" | "map" | "object" | "anything";

export type Field = {
  readonly type: Type;
  /** Whether it is a list. */
  readonly list: boolean;
  readonly description: string;
  readonly required: boolean;
  /** The only values it may have; empty: any. */
  readonly values: readonly string[];
  /** The fields of an object. */
  readonly fields: Fields;
};

export type Fields = Readonly<Record<string, Field>>;

const field = (type: Type, description: string, rest: Partial<Field> = {}): Field => ({
  type,
  description,
  list: false,
  required: false,
  values: [],
  fields: {},
  ...rest,
});

export const text = (description: string, ...values: string[]) => field("string", description, { values });
export const texts = (description: string) => field("string", description, { list: true });
export const integer = (description: string) => field("integer", description);
export const flag = (description: string) => field("boolean", description);
export const integerOrText = (description: string) => field("integer or string", description);
/** A map of strings. */
export const map = (description: string) => field("map", description);
export const anything = (description: string) => field("anything", description);
export const object = (description: string, fields: Fields) => field("object", description, { fields });
export const objects = (description: string, fields: Fields) =>
  field("object", description, { fields, list: true });
export const required = (one: Field): Field => ({ ...one, required: true });

/** Fields that are accepted and ignored. */
export function ignored(names: string, description: string): Fields {
  return Object.fromEntries(names.split(" ").map((name) => [name, anything(description)]));
}

export type FieldError = {
  readonly kind: "unknown" | "type" | "value";
  readonly path: string;
  readonly message: string;
};

export const valueError = (path: string, message: string): FieldError => ({ kind: "value", path, message });
export const invalidValue = (path: string, given: unknown, why: string): FieldError =>
  valueError(path, `Invalid value: ${JSON.stringify(given)}: ${why}`);

/** All validation errors of a value. Null counts as absent. */
export function fieldErrors(value: unknown, one: Field, path: string, inList = false): FieldError[] {
  if (value === null || value === undefined) return [];
  if (one.list && !inList) {
    if (!Array.isArray(value)) return [wrongType(value, "a list", path)];
    return value.flatMap((each, i) => fieldErrors(each, one, `${path}[${i}]`, true));
  }
  switch (one.type) {
    case "string":
      if (typeof value !== "string") return [wrongType(value, "a string", path)];
      return one.values.length === 0 || one.values.includes(value) ? [] : [wrongValue(value, one, path)];
    case "integer":
      return Number.isInteger(value) ? [] : [wrongType(value, "an integer", path)];
    case "boolean":
      return typeof value === "boolean" ? [] : [wrongType(value, "true or false", path)];
    case "integer or string":
      return Number.isInteger(value) || typeof value === "string"
        ? []
        : [wrongType(value, "an integer or a string", path)];
    case "map":
      if (!isMap(value)) return [wrongType(value, "a map", path)];
      return Object.entries(value).flatMap(([name, each]) =>
        typeof each === "string" || each === null ? [] : [wrongType(each, "a string", `${path}.${name}`)],
      );
    case "object":
      return isMap(value) ? insideObject(value, one, path) : [wrongType(value, "an object", path)];
    case "anything":
      return [];
  }
}

/** How many unknown fields of an object get a suggestion. */
const hintLimit = 10;

function insideObject(value: Record<string, unknown>, { fields }: Field, path: string): FieldError[] {
  const at = (name: string) => (path === "" ? name : `${path}.${name}`);
  const missing = Object.entries(fields).flatMap(([name, { required: needed }]): FieldError[] =>
    needed && (own(value, name) ?? null) === null
      ? [{ kind: "value", path: at(name), message: "Required value" }]
      : [],
  );
  let unknown = 0;
  const given = Object.entries(value).flatMap(([name, each]): FieldError[] => {
    const known = own(fields, name);
    if (known !== undefined) return fieldErrors(each, known, at(name));
    const near = ++unknown > hintLimit ? null : closest(name, Object.keys(fields));
    const hint = near === null ? "" : `; did you mean ${JSON.stringify(at(near))}?`;
    return [{ kind: "unknown", path: at(name), message: `unknown field ${JSON.stringify(at(name))}${hint}` }];
  });
  return [...missing, ...given];
}

function wrongType(value: unknown, wanted: string, path: string): FieldError {
  return { kind: "type", path, message: `must be ${wanted}, not ${JSON.stringify(value)}` };
}

function wrongValue(value: string, { values }: Field, path: string): FieldError {
  const supported = values.map((each) => JSON.stringify(each)).join(", ");
  const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}`;
  return { kind: "value", path, message };
}
