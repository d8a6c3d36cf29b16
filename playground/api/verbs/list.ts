// Answers list requests: selectors, resourceVersion rules, and pages at the version of the first page.
import { badRequest, Failure, invalid, tooLarge } from "../http/failure.ts";
import type { ApiRequest } from "../http/request.ts";
import { isMap, keyOf } from "../objects/object.ts";
import { apiVersionOf } from "../objects/resources.ts";
import { matcher } from "../objects/selectors.ts";
import type { Store } from "../objects/store.ts";

export function listObjects(store: Store, request: ApiRequest) {
  const { resource, namespace, query } = request;
  if (query.has("sendInitialEvents")) {
    throw invalid(
      "ListOptions",
      "",
      "Forbidden: sendInitialEvents is forbidden for list",
      "sendInitialEvents",
    );
  }
  const page = pageOf(store, query);
  const matches = selectionOf(request);
  const objects = store
    .list(resource, page.version)
    .filter((object) => (namespace === "" || object.metadata.namespace === namespace) && matches(object))
    .filter((object) => page.after === "" || keyOf(object) > page.after);
  const items = page.limit > 0 ? objects.slice(0, page.limit) : objects;
  const left = objects.length - items.length;
  return {
    kind: `${resource.kind}List`,
    apiVersion: apiVersionOf(resource),
    metadata: {
      resourceVersion: `${page.version}`,
      ...(left > 0 ? { continue: token(page.version, keyOf(items.at(-1)!)), remainingItemCount: left } : {}),
    },
    // Items of a list carry neither kind nor apiVersion, as in the real API.
    items: items.map(({ apiVersion: _version, kind: _kind, ...item }) => item),
  };
}

export function selectionOf({ resource, query, name }: ApiRequest) {
  const fieldSelector = [query.get("fieldSelector") ?? "", name === "" ? "" : `metadata.name=${name}`];
  return matcher(
    resource,
    query.get("labelSelector") ?? "",
    fieldSelector.filter((part) => part !== "").join(","),
  );
}

/** The minimum version of a list or streaming list; 0: any. */
export function requestedVersion(store: Store, query: URLSearchParams): number {
  const text = query.get("resourceVersion") ?? "";
  if (!/^[0-9]*$/.test(text)) throw badRequest(`invalid resource version ${JSON.stringify(text)}`);
  const version = Number(text);
  if (version > store.version) throw tooLarge(text, store.version);
  return version;
}

type Page = { readonly version: number; readonly after: string; readonly limit: number };

function pageOf(store: Store, query: URLSearchParams): Page {
  const limit = Number(query.get("limit") ?? 0);
  const match = query.get("resourceVersionMatch") ?? "";
  const version = query.get("resourceVersion") ?? "";
  const next = query.get("continue") ?? "";
  const forbidden = (field: string, why: string) => invalid("ListOptions", "", `Forbidden: ${why}`, field);
  if (match !== "" && next !== "")
    throw forbidden("resourceVersionMatch", "is forbidden when continue is provided");
  if (match !== "" && version === "")
    throw forbidden("resourceVersionMatch", "is forbidden unless resourceVersion is provided");
  if (match === "Exact" && version === "0")
    throw forbidden("resourceVersionMatch", "Exact is forbidden for resourceVersion 0");
  if (next !== "") {
    if (version !== "" && version !== "0")
      throw badRequest("specifying resource version is not allowed when using continue");
    return { ...readToken(store, next), limit };
  }
  const wanted = requestedVersion(store, query);
  return { version: match === "Exact" ? wanted : store.version, after: "", limit };
}

function token(version: number, after: string): string {
  return Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv: version, start: after })).toString(
    "base64url",
  );
}

function readToken(store: Store, text: string): { version: number; after: string } {
  const { rv, start } = tokenFields(text);
  if (typeof rv !== "number" || typeof start !== "string") throw badRequest("continue key is not valid");
  if (store.hasVersion(rv)) return { version: rv, after: start };
  throw new Failure(
    410,
    "Expired",
    "The provided continue parameter is too old to display a consistent list result.",
  );
}

function tokenFields(text: string): { rv?: unknown; start?: unknown } {
  try {
    const fields: unknown = JSON.parse(Buffer.from(text, "base64url").toString());
    return isMap(fields) ? fields : {};
  } catch {
    throw badRequest("continue key is not valid");
  }
}
