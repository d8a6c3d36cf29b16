// Answers the verbs that change objects: create, update, patch, delete, deletecollection.
import { parse } from "yaml";
import { decoded, unknownFormat, type WriteBody } from "./body.ts";
import type { Admit, Customs } from "./customs.ts";
import { badRequest, Failure, invalid } from "./failure.ts";
import { type ApiObject, type Draft, isMap } from "./object.ts";
import { applyPatch, jsonPatch, mergePatch, strategicPatch } from "./patch.ts";
import { deleted, deletedAll } from "./remove.ts";
import { type ApiRequest, isDryRun, isStrict } from "./request.ts";
import { apiVersionOf } from "./resources.ts";
import { scaled, scaleOf } from "./scale.ts";
import type { Store } from "./store.ts";

export type Answer = { readonly code: number; readonly body: unknown };

/** What each field manager applied last, by `manager uid`. */
export type Applied = Map<string, unknown>;

export function writeObject(
  store: Store,
  request: ApiRequest,
  body: WriteBody,
  applied: Applied,
  { admit, linger, release = () => {} }: Customs,
): Answer {
  switch (request.verb) {
    case "create":
      return { code: 201, body: created(store, request, named(request, decoded(body)), admit) };
    case "update":
      return { code: 200, body: replaced(store, request, decoded(body), admit) };
    case "patch":
      return patched(store, request, body, applied, admit);
    case "delete":
      return { code: 200, body: deleted(store, request, body, { linger, release }) };
    case "deletecollection":
      return { code: 200, body: deletedAll(store, request, body, { linger, release }) };
    case "get":
    case "list":
    case "watch":
      throw new Failure(405, "MethodNotAllowed", "not a write");
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
  const admitted = admit(request.resource, withoutStatus(request, draft), null, isStrict(request));
  return isDryRun(request) ? admitted : store.create(request.resource, admitted);
}

/** A write to the object leaves its status alone, one to `/status` leaves the rest alone. */
function replaced(store: Store, request: ApiRequest, body: unknown, admit: Admit): unknown {
  const old = store.get(request.resource, request.namespace, request.name);
  if (request.subresource === "scale") {
    const next = admit(request.resource, scaled(old, body), old, false);
    return scaleOf(
      isDryRun(request) ? ({ ...old, ...next } as ApiObject) : store.update(request.resource, next),
    );
  }
  const draft = named(request, body);
  if (request.subresource === "status") {
    const version = draft.metadata?.resourceVersion ?? "";
    return store.update(request.resource, {
      ...old,
      metadata: { ...old.metadata, resourceVersion: version },
      status: draft.status,
    });
  }
  const admitted = admit(request.resource, withoutStatus(request, draft), old, isStrict(request));
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
        throw unknownFormat(body.contentType);
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
  const draft = named(request, parse(body.bytes.toString()));
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
