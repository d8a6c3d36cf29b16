// Finds fields and values in an object that Kubernetes does not have, with the closest valid name.
import { closest } from "../../config/closest.ts";
import { describe, type Identity } from "../../manifests/identity.ts";
import { quoted } from "../../model/problem.ts";
import { type Shape, shapes } from "./known-fields.ts";

export type FieldPath = readonly (string | number)[];

/** `kind`: the same for all findings that differ only in the object and the index in a list. */
export type Finding = { readonly path: FieldPath; readonly kind: string; readonly message: string };

export function checkFields(who: Identity, object: unknown): readonly Finding[] {
  const findings: Finding[] = [];
  check(shapes[who.kind], object, []);
  return findings;

  function check(shape: Shape, value: unknown, path: FieldPath): void {
    if (shape === "any" || value === null || value === undefined) return;
    if ("oneOf" in shape) checkValue(shape.oneOf, value, path);
    else if ("list" in shape) {
      if (!Array.isArray(value)) return;
      for (let i = 0; i < value.length; i++) check(shape.list, value[i], [...path, i]);
    } else if (typeof value === "object" && !Array.isArray(value)) checkKeys(shape.fields, value, path);
  }

  function checkKeys(known: ReadonlyMap<string, Shape>, value: object, path: FieldPath): void {
    for (const key of Object.keys(value)) {
      const shape = known.get(key);
      if (shape === "any") continue;
      const inner = [...path, key];
      if (shape === undefined) {
        const near = closest(key, known.keys());
        const hint = near === null ? "" : `; did you mean ${near}?`;
        add(inner, `unknown field ${quoted(textOf(inner))} in ${describe(who)} is ignored${hint}`);
      } else check(shape, (value as Readonly<Record<string, unknown>>)[key], inner);
    }
  }

  /** A value that is not text is reported by the code that reads it. */
  function checkValue(known: readonly string[], value: unknown, path: FieldPath): void {
    if (typeof value !== "string" || value === "" || known.includes(value)) return;
    const near = closest(value, known);
    const hint = near === null ? `must be ${known.join(", ")}` : `did you mean ${near}?`;
    add(path, `unknown value ${quoted(value)} of ${textOf(path)} in ${describe(who)}; ${hint}`);
  }

  function add(path: FieldPath, message: string): void {
    findings.push({
      path,
      kind: `${who.kind} ${path.filter((part) => typeof part === "string").join(".")}`,
      message,
    });
  }
}

/** `spec.ports[0].nodePorts` */
function textOf(path: FieldPath): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`))
    .join("")
    .slice(1);
}
