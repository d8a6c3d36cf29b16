// Answers the verbs that change objects: create, update, patch, delete, deletecollection.

import type { AdmissionHooks, Admit } from "../admission-hooks.ts";
import { applyPatch, decoded, type WriteBody } from "../http/body.ts";
import { badRequest, Failure } from "../http/failure.ts";
import { checkInput } from "../http/input.ts";
import { type ApiRequest, isDryRun, isStrict } from "../http/request.ts";
import { type ApiObject, type Draft, isMap } from "../objects/object.ts";
import { apiVersionOf } from "../objects/resources.ts";
import type { Store } from "../objects/store.ts";
import { jsonPatch, mergePatch, strategicPatch } from "./patch.ts";
import { deleted, deletedAll } from "./remove.ts";
import { scaled, scaleOf } from "./scale.ts";

export type Answer = { readonly code: number; readonly body: unknown };

export function writeObject(
  store: Store,
  request: ApiRequest,
  body: WriteBody,
  { admit, terminate, checkDelete = () => {} }: AdmissionHooks,
): Answer {
  switch (request.verb) {
    case "create":
      return { code: 201, body: created(store, request, named(request, decoded(body)), admit) };
    case "update":
      return { code: 200, body: replaced(store, request, decoded(body), admit) };
    case "patch":
      return patched(store, request, body, admit);
    case "delete":
      return { code: 200, body: deleted(store, request, body, { terminate, checkDelete }) };
    case "deletecollection":
      return { code: 200, body: deletedAll(store, request, body, { terminate, checkDelete }) };
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
function created(store: Store, request: ApiRequest, draft: Draft, admit: Admit): ApiObject {
  const next = admit(request.resource, withoutStatus(request, draft), null, isStrict(request));
  return store.create(request.resource, next, isDryRun(request));
}

/** A write to the object leaves its status alone, one to `/status` leaves the rest alone. */
function replaced(store: Store, request: ApiRequest, body: unknown, admit: Admit): unknown {
  const { resource, namespace, name, subresource } = request;
  const old = store.get(resource, namespace, name);
  if (subresource === "scale") {
    const next = admit(resource, scaled(old, body), old, false);
    return scaleOf(store.update(resource, next, isDryRun(request)));
  }
  const draft = named(request, body);
  if (subresource === "status") {
    const metadata = { ...old.metadata, resourceVersion: draft.metadata?.resourceVersion ?? "" };
    return store.update(resource, { ...old, metadata, status: draft.status }, isDryRun(request));
  }
  const admitted = admit(resource, withoutStatus(request, draft), old, isStrict(request));
  const kept = resource.hasStatus && old.status !== undefined;
  const next = kept ? { ...admitted, status: old.status } : admitted;
  return store.update(resource, next, isDryRun(request));
}

function patched(store: Store, request: ApiRequest, body: WriteBody, admit: Admit): Answer {
  const { resource, namespace, name } = request;
  if (body.mediaType === applyPatch) throw noServerSideApply();
  const old = store.get(resource, namespace, name);
  const patch = decoded(body);
  const whole = request.subresource === "scale" ? scaleOf(old) : old;
  // A patch without a version applies to the current object.
  const base = { ...whole, metadata: { ...whole.metadata, resourceVersion: "" } };
  const next = patchedBase();
  // A patch may increase the nesting depth.
  checkInput(next);
  return { code: 200, body: replaced(store, request, next, admit) };

  function patchedBase(): unknown {
    switch (body.mediaType) {
      case "application/json-patch+json":
        return jsonPatch(base, patch);
      case "application/merge-patch+json":
        return mergePatch(base, patch);
      default:
        return strategicPatch(resource, base, patch);
    }
  }
}

/** 415 is what kubectl reports as "Server-side apply not available on the server". */
function noServerSideApply(): Failure {
  return new Failure(
    415,
    "UnsupportedMediaType",
    "the playground has no server-side apply; use kubectl apply without --server-side",
  );
}
