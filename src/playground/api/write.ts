// Answers the verbs that change objects: create, update, patch, delete, deletecollection.
import { parse } from "yaml";
import { badRequest, Failure, invalid } from "./failure.ts";
import { selectionOf } from "./list.ts";
import { type ApiObject, type Draft, isMap } from "./object.ts";
import { applyPatch, jsonPatch, mergePatch, strategicPatch } from "./patch.ts";
import type { ApiRequest } from "./request.ts";
import { apiVersionOf, type Resource } from "./resources.ts";
import { scaled, scaleOf } from "./scale.ts";
import type { Store } from "./store.ts";

export type Answer = { readonly code: number; readonly body: unknown };

/** What each field manager applied last, by `manager uid`. */
export type Applied = Map<string, unknown>;

/** Fills in and checks what a writer hands in, before it is stored; `old` is null for a new object. */
export type Admit = (resource: Resource, draft: Draft, old: ApiObject | null) => Draft;

export type WriteBody = { readonly contentType: string; readonly text: string };

export function writeObject(
  store: Store,
  request: ApiRequest,
  body: WriteBody,
  applied: Applied,
  admit: Admit,
): Answer {
  switch (request.verb) {
    case "create":
      return { code: 201, body: created(store, request, named(request, decoded(body)), admit) };
    case "update":
      return { code: 200, body: replaced(store, request, decoded(body), admit) };
    case "patch":
      return patched(store, request, body, applied, admit);
    case "delete":
      return { code: 200, body: deleted(store, request, body) };
    case "deletecollection":
      return { code: 200, body: deletedAll(store, request) };
    case "get":
    case "list":
    case "watch":
      throw new Failure(405, "MethodNotAllowed", "not a write");
  }
}

function isBinary({ contentType }: WriteBody): boolean {
  return /protobuf|cbor/.test(contentType);
}

function decoded(body: WriteBody): unknown {
  const { contentType, text } = body;
  if (isBinary(body)) {
    throw new Failure(
      415,
      "UnsupportedMediaType",
      `the body of the request was in an unknown format: ${contentType}`,
    );
  }
  try {
    return contentType.includes("yaml") ? parse(text) : JSON.parse(text);
  } catch (error) {
    throw badRequest(`cannot read the body: ${(error as Error).message}`);
  }
}

/** The draft with the namespace and name of the path, which it must not contradict. */
function named({ resource, namespace, name }: ApiRequest, draft: unknown): Draft {
  if (!isMap(draft)) throw badRequest("the body must be an object");
  const kind = draft.kind ?? resource.kind;
  const apiVersion = draft.apiVersion ?? apiVersionOf(resource);
  if (kind !== resource.kind || apiVersion !== apiVersionOf(resource)) {
    throw badRequest(
      `the kind in the data does not match the expected one (${apiVersionOf(resource)}, ${resource.kind})`,
    );
  }
  const metadata = isMap(draft.metadata) ? draft.metadata : {};
  if (namespace !== "" && metadata.namespace !== undefined && metadata.namespace !== namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  if (name !== "" && metadata.name !== undefined && metadata.name !== name) {
    throw badRequest(`the name of the object does not match the name on the URL (${name})`);
  }
  const given = name || metadata.name || generatedName(metadata.generateName);
  const where = resource.namespaced ? { namespace: namespace || metadata.namespace || "default" } : {};
  return { ...draft, metadata: { ...metadata, ...where, ...(given ? { name: given } : {}) } } as Draft;
}

function generatedName(prefix: unknown): string | undefined {
  if (typeof prefix !== "string" || prefix === "") return undefined;
  return `${prefix}${Math.random().toString(36).slice(2, 7)}`;
}

function withoutStatus({ resource }: ApiRequest, draft: Draft): Draft {
  if (!resource.hasStatus) return draft;
  const { status: _, ...rest } = draft;
  return rest;
}

/** With `dryRun` everything is checked and nothing is stored. */
function created(store: Store, request: ApiRequest, draft: Draft, admit: Admit): ApiObject | Draft {
  const admitted = admit(request.resource, withoutStatus(request, draft), null);
  return isDryRun(request) ? admitted : store.create(request.resource, admitted);
}

function isDryRun({ query }: ApiRequest): boolean {
  return query.has("dryRun");
}

/** A write to the object leaves its status alone, one to `/status` leaves the rest alone. */
function replaced(store: Store, request: ApiRequest, body: unknown, admit: Admit): unknown {
  const old = store.get(request.resource, request.namespace, request.name);
  if (request.subresource === "scale") return scaleOf(store.update(request.resource, scaled(old, body)));
  const draft = named(request, body);
  if (request.subresource === "status") {
    const version = draft.metadata?.resourceVersion ?? "";
    return store.update(request.resource, {
      ...old,
      metadata: { ...old.metadata, resourceVersion: version },
      status: draft.status,
    });
  }
  const admitted = admit(request.resource, withoutStatus(request, draft), old);
  const kept = request.resource.hasStatus && old.status !== undefined;
  const next = kept ? { ...admitted, status: old.status } : admitted;
  return isDryRun(request) ? next : store.update(request.resource, next);
}

function patched(store: Store, request: ApiRequest, body: WriteBody, applied: Applied, admit: Admit): Answer {
  const { resource, namespace, name } = request;
  if (body.contentType.startsWith("application/apply-patch"))
    return appliedObject(store, request, body, applied, admit);
  const old = store.get(resource, namespace, name);
  const patch = decoded(body);
  const whole = request.subresource === "scale" ? scaleOf(old) : old;
  // Without a version of its own a patch meets whatever is there.
  const base = { ...whole, metadata: { ...whole.metadata, resourceVersion: "" } };
  return { code: 200, body: replaced(store, request, patchedBase(), admit) };

  function patchedBase(): unknown {
    switch (body.contentType.split(";")[0] ?? "") {
      case "application/json-patch+json":
        return jsonPatch(base, patch);
      case "application/merge-patch+json":
        return mergePatch(base, patch);
      case "application/strategic-merge-patch+json":
        return strategicPatch(resource, base, patch);
      default:
        throw new Failure(
          415,
          "UnsupportedMediaType",
          `the body of the request was in an unknown format: ${body.contentType}`,
        );
    }
  }
}

function appliedObject(
  store: Store,
  request: ApiRequest,
  body: WriteBody,
  applied: Applied,
  admit: Admit,
): Answer {
  const { resource, namespace, name, query } = request;
  const manager = query.get("fieldManager") ?? "";
  if (manager === "")
    throw invalid("PatchOptions", "", "fieldManager: Required value: is required for apply patch");
  const draft = named(request, parse(body.text));
  if (!store.has(resource, namespace, name)) {
    const made = created(store, request, draft, admit);
    applied.set(`${manager} ${String(made.metadata?.uid)}`, draft);
    return { code: 201, body: made };
  }
  const old = store.get(resource, namespace, name);
  const id = `${manager} ${old.metadata.uid}`;
  const base = { ...old, metadata: { ...old.metadata, resourceVersion: "" } };
  const answer = replaced(store, request, applyPatch(base, applied.get(id), draft), admit);
  applied.set(id, draft);
  return { code: 200, body: answer };
}

function deleted(store: Store, { resource, namespace, name }: ApiRequest, body: WriteBody) {
  // kubectl drain sends its options in protobuf; without preconditions nothing in them matters here.
  const options = body.text === "" || isBinary(body) ? {} : decoded(body);
  const uid = isMap(options) && isMap(options.preconditions) ? options.preconditions.uid : undefined;
  const gone = store.delete(resource, namespace, name, typeof uid === "string" ? uid : undefined);
  const details = { name, kind: resource.plural, uid: gone.metadata.uid };
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
}

function deletedAll(store: Store, request: ApiRequest) {
  const { resource, namespace } = request;
  const matches = selectionOf(request);
  const doomed = store
    .list(resource)
    .filter((object) => (namespace === "" || object.metadata.namespace === namespace) && matches(object));
  const items = doomed.map((object) =>
    store.delete(resource, object.metadata.namespace ?? "", object.metadata.name),
  );
  return {
    kind: `${resource.kind}List`,
    apiVersion: apiVersionOf(resource),
    metadata: { resourceVersion: `${store.version}` },
    items,
  };
}
