// API discovery for kubectl: groups, kinds, version and health.

import { apiVersionOf, type Resource, resources } from "../objects/resources.ts";
import { openApiAnswer } from "./openapi.ts";

const verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/** The response to a discovery path; null for other paths. */
export function discoveryAnswer(path: string): unknown {
  if (path === "/openapi/v3" || path.startsWith("/openapi/v3/")) return openApiAnswer(path);
  const groups = [...new Set(resources.map(({ group }) => group))].filter((group) => group !== "");
  if (path === "/version") return { major: "1", minor: "37", gitVersion: "v1.37.0", platform: "linux/amd64" };
  if (path === "/api") return { kind: "APIVersions", apiVersion: "v1", versions: ["v1"] };
  if (path === "/apis") return { kind: "APIGroupList", apiVersion: "v1", groups: groups.map(groupOf) };
  const group = groups.find((name) => path === `/apis/${name}`);
  if (group) return { kind: "APIGroup", apiVersion: "v1", ...groupOf(group) };
  const version = path === "/api/v1" ? "v1" : /^\/apis\/([^/]+\/[^/]+)$/.exec(path)?.[1];
  const found = resources.filter((resource) => apiVersionOf(resource) === version);
  if (found.length === 0) return null;
  return {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: version,
    resources: found.flatMap(describe),
  };
}

export function isHealthPath(path: string): boolean {
  return path === "/healthz" || path === "/livez" || path === "/readyz";
}

function groupOf(name: string) {
  const version = { groupVersion: `${name}/v1`, version: "v1" };
  return { name, versions: [version], preferredVersion: version };
}

function describe({ plural, kind, namespaced, hasStatus, hasScale, shortNames }: Resource) {
  // What `kubectl get all` shows.
  const categories = ["Service", "Pod", "Deployment"].includes(kind) ? ["all"] : [];
  const main = {
    name: plural,
    singularName: kind.toLowerCase(),
    namespaced,
    kind,
    verbs,
    shortNames,
    categories,
  };
  const status = {
    name: `${plural}/status`,
    singularName: "",
    namespaced,
    kind,
    verbs: ["get", "patch", "update"],
  };
  const scale = {
    ...status,
    name: `${plural}/scale`,
    kind: "Scale",
    group: "autoscaling",
    version: "v1",
  };
  return [main, ...(hasStatus ? [status] : []), ...(hasScale ? [scale] : [])];
}
