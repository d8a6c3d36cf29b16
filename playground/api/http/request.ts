// Parses a request: resource, namespace, name, verb and options.
import type { IncomingMessage } from "node:http";
import type { Verb } from "../faults.ts";
import { type Resource, resources } from "../objects/resources.ts";
import { badRequest, Failure, noSuchPath } from "./failure.ts";

export type ApiRequest = {
  readonly verb: Verb;
  readonly resource: Resource;
  /** Empty: all namespaces, or a resource without them. */
  readonly namespace: string;
  /** Empty for a collection. */
  readonly name: string;
  readonly subresource: "" | "status" | "scale";
  readonly query: URLSearchParams;
};

/** Throws Failure 404 for an unknown path. */
export function parseRequest(message: IncomingMessage): ApiRequest {
  const url = urlOf(message);
  const parts = url.pathname
    .split("/")
    .filter((part) => part !== "")
    .map(decodedPart);
  const [group, version, rest] =
    parts[0] === "api" ? ["", parts[1], parts.slice(2)] : [parts[1], parts[2], parts.slice(3)];
  if (parts[0] !== "api" && parts[0] !== "apis") throw noSuchPath();
  const inNamespace = rest[0] === "namespaces" && rest.length > 2 && rest[2] !== "status";
  const [plural, name = "", subresource = ""] = inNamespace ? rest.slice(2) : rest;
  const namespace = inNamespace ? rest[1]! : "";
  const resource = resources.find(
    (candidate) => candidate.group === group && candidate.version === version && candidate.plural === plural,
  );
  if (!resource || (namespace !== "" && !resource.namespaced)) throw noSuchPath(plural);
  if (resource.kind === "Pod" && Object.hasOwn(insidePods, subresource))
    throw noContainers(namespace, name, insidePods[subresource]!);
  if (!isSubresource(subresource, resource)) throw noSuchPath();
  const query = url.searchParams;
  return {
    verb: verbOf(message.method ?? "GET", name, query),
    resource,
    namespace,
    name,
    subresource,
    query,
  };
}

/** Throws Failure 400 for a malformed path. */
export function urlOf(message: IncomingMessage): URL {
  try {
    return new URL(`http://server${message.url ?? "/"}`);
  } catch {
    throw badRequest("cannot parse the path of the request");
  }
}

/** Subresources that require containers, and which alternative the error suggests. */
const insidePods: Readonly<Record<string, "log" | "shell" | "requests">> = {
  log: "log",
  exec: "shell",
  attach: "shell",
  ephemeralcontainers: "shell",
  portforward: "requests",
};

function decodedPart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw badRequest(`cannot read ${JSON.stringify(part)} in the path`);
  }
}

function noContainers(namespace: string, name: string, wanted: "log" | "shell" | "requests"): Failure {
  const instead = {
    log: `at the prompt of the playground, "send outside nodeport:30080" shows which pod answers`,
    shell: `a shell in its network: ip netns exec turnout-${process.pid}-${namespace}.${name} sh`,
    requests: `at the prompt of the playground: send ${name} svc/NAMESPACE/NAME:PORT`,
  };
  const message = `playground pods are echo servers without containers, logs or shells; ${instead[wanted]}`;
  return new Failure(405, "MethodNotAllowed", message);
}

function isSubresource(name: string, { hasStatus, hasScale }: Resource): name is ApiRequest["subresource"] {
  return name === "" || (name === "status" && hasStatus) || (name === "scale" && hasScale === true);
}

/** A query flag is on when it is present and not false. */
export function isOn(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value !== null && value !== "false" && value !== "0";
}

/** Whether unknown fields are refused, as kubectl requests. */
export function isStrict({ query }: ApiRequest): boolean {
  return query.get("fieldValidation") === "Strict";
}

/** With `dryRun` everything is checked and nothing is stored. */
export function isDryRun({ query }: ApiRequest): boolean {
  return query.has("dryRun");
}

function verbOf(method: string, name: string, query: URLSearchParams): Verb {
  switch (method) {
    case "GET":
      if (isOn(query, "watch")) return "watch";
      return name === "" ? "list" : "get";
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return name === "" ? "deletecollection" : "delete";
    default:
      throw noSuchPath();
  }
}
