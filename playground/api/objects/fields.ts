// What the fields of an object hold, as data: told to `kubectl explain`, and compared with what a writer hands in.
import { closest } from "../../../src/config/closest.ts";
import { isMap, own } from "./object.ts";

type Type = "string" | "integer" | "boolean" | "integer or string" | "map" | "object" | "anything";

export type Field = {
  readonly type: Type;
  /** Whether there may be several. */
  readonly list: boolean;
  readonly description: string;
  readonly required: boolean;
  /** The only values it may have; empty: any. */
  readonly values: readonly string[];
  /** The fields of an object. */
  readonly fields: Fields;
};

export type Fields = Readonly<Record<string, Field>>;

const field = (type: Type, says: string, rest: Partial<Field> = {}): Field => ({
  type,
  description: says,
  list: false,
  required: false,
  values: [],
  fields: {},
  ...rest,
});

export const text = (says: string, ...values: string[]) => field("string", says, { values });
export const texts = (says: string) => field("string", says, { list: true });
export const integer = (says: string) => field("integer", says);
export const flag = (says: string) => field("boolean", says);
export const integerOrText = (says: string) => field("integer or string", says);
/** Names and texts. */
export const map = (says: string) => field("map", says);
export const anything = (says: string) => field("anything", says);
export const object = (says: string, fields: Fields) => field("object", says, { fields });
export const objects = (says: string, fields: Fields) => field("object", says, { fields, list: true });
export const required = (one: Field): Field => ({ ...one, required: true });

/** Fields that may be there and are passed over. */
export function ignored(names: string, says: string): Fields {
  return Object.fromEntries(names.split(" ").map((name) => [name, anything(says)]));
}

export type FieldError = {
  readonly kind: "unknown" | "type" | "value";
  readonly path: string;
  readonly message: string;
};

export const valueError = (path: string, message: string): FieldError => ({ kind: "value", path, message });
export const invalidValue = (path: string, given: unknown, why: string): FieldError =>
  valueError(path, `Invalid value: ${JSON.stringify(given)}: ${why}`);

/** Everything about a value that its field does not allow. A field that is null counts as absent. */
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

/** For so many unknown fields of an object a similar name is searched. */
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
