// Who an object is: kind, namespace and name, as key in our maps and as text in Problems.
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
  return { kind, namespace: intern(namespace), name, key: `${namespace}/${name}` };
}

/** `Service shop/web`; text that is no legal name is quoted. */
export function describe(who: Identity): string {
  const name = shown(who.name);
  return isNamespaced(who.kind) ? `${who.kind} ${shown(who.namespace)}/${name}` : `${who.kind} ${name}`;
}

/** A superset of every name Kubernetes allows; what gets past it can stand in rules, logs and terminals as it is. */
export function isName(name: string): boolean {
  return name.length <= 253 && /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/.test(name);
}

export function isNamespaced(kind: Kind): boolean {
  return kind === "Service" || kind === "EndpointSlice";
}

function shown(name: string): string {
  return isName(name) ? name : quoted(name);
}

function rawField(value: unknown, field: string): unknown {
  return typeof value === "object" && value !== null ? (value as Raw)[field] : undefined;
}
