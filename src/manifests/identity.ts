// The identity of an object: kind, namespace and name, as key in our maps and as text in Problems.
import { flatText } from "../model/flat-text.ts";
import { quoted } from "../model/problem.ts";
import { intern, type Kind, type Raw } from "./objects.ts";

export type Identity = {
  readonly kind: Kind;
  /** Empty for kinds without namespace, and when it is missing. */
  readonly namespace: string;
  readonly name: string;
  /** `namespace/name`, or the name alone for kinds without namespace. */
  readonly key: string;
};

/** Never throws: what is missing or has the wrong type is empty. */
export function identify(kind: Kind, object: unknown): Identity {
  const metadata = rawField(object, "metadata");
  const namespace = rawField(metadata, "namespace");
  const name = rawField(metadata, "name");
  return identity(kind, typeof namespace === "string" ? namespace : "", typeof name === "string" ? name : "");
}

export function identity(kind: Kind, namespace: string, name: string): Identity {
  if (!isNamespaced(kind)) return { kind, namespace: "", name, key: name };
  return { kind, namespace: intern(namespace), name, key: flatText("/", namespace, name) };
}

/** `Service shop/web`; text that is no legal name is quoted. */
export function describe(who: Identity): string {
  const name = shown(who.name);
  return isNamespaced(who.kind) ? `${who.kind} ${shown(who.namespace)}/${name}` : `${who.kind} ${name}`;
}

/** A superset of every name Kubernetes allows; what passes is safe in rules, logs and terminals. */
export function isName(name: string): boolean {
  const last = name.length - 1;
  if (last < 0 || last > 252) return false;
  for (let i = 0; i <= last; i++) {
    const code = name.charCodeAt(i);
    if (!isLetterOrDigit(code) && !(i > 0 && i < last && isJoint(code))) return false;
  }
  return true;
}

export function isNamespaced(kind: Kind): boolean {
  return kind === "Service" || kind === "EndpointSlice";
}

function isLetterOrDigit(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || (code >= 65 && code <= 90);
}

/** `-`, `.` or `_`. */
function isJoint(code: number): boolean {
  return code === 45 || code === 46 || code === 95;
}

function shown(name: string): string {
  return isName(name) ? name : quoted(name);
}

function rawField(value: unknown, field: string): unknown {
  return typeof value === "object" && value !== null ? (value as Raw)[field] : undefined;
}
