// One entry of a kubeconfig, field by field: absent is empty, and the wrong type is refused with the name of the field.
import { isMap } from "./failure.ts";

export type Fields = Readonly<Record<string, unknown>>;

export type Entry = {
  readonly raw: Fields;
  text(name: string): string;
  texts(name: string): readonly string[];
  flag(name: string): boolean;
  /** null when absent. */
  entry(name: string): Entry | null;
  entries(name: string): readonly Entry[];
};

/** `at`: its position in the file. `refuse` throws. */
export function entryOf(raw: Fields, at: string, refuse: (why: string) => never): Entry {
  const placed = (name: string) => (at === "" ? name : `${at}.${name}`);
  const typed = <T>(
    value: unknown,
    is: (value: unknown) => value is T,
    absent: T,
    name: string,
    what: string,
  ) =>
    value === undefined || value === null
      ? absent
      : is(value)
        ? value
        : refuse(`${placed(name)} is ${typeName(value)}, not ${what}`);
  const list = (name: string) => typed(raw[name], isList, [], name, "a list");
  const inner = (value: unknown, name: string) =>
    entryOf(typed(value, isMap, {}, name, "an object"), placed(name), refuse);
  return {
    raw,
    text: (name) => typed(raw[name], isText, "", name, "text"),
    texts: (name) => list(name).map((item, i) => typed(item, isText, "", `${name}[${i}]`, "text")),
    flag: (name) => typed(raw[name], isFlag, false, name, "true or false"),
    entry: (name) => (raw[name] === undefined || raw[name] === null ? null : inner(raw[name], name)),
    entries: (name) => list(name).map((item, i) => inner(item, `${name}[${i}]`)),
  };
}

/** Never the value itself, which may be a secret. */
function typeName(value: unknown): string {
  if (typeof value === "object") return Array.isArray(value) ? "a list" : "an object";
  return typeof value === "string" ? "text" : `a ${typeof value}`;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isFlag(value: unknown): value is boolean {
  return typeof value === "boolean";
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}
