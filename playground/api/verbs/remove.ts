// Answers delete and deletecollection, immediately or with a grace period.

import type { CheckDelete, Terminate } from "../admission-hooks.ts";
import { decoded, type WriteBody } from "../http/body.ts";
import { badRequest, conflict } from "../http/failure.ts";
import { type ApiRequest, isDryRun } from "../http/request.ts";
import { type ApiObject, type Draft, isMap } from "../objects/object.ts";
import { apiVersionOf } from "../objects/resources.ts";
import type { Store } from "../objects/store.ts";
import { selectionOf } from "./list.ts";

type DeletionHooks = { readonly terminate: Terminate; readonly checkDelete: CheckDelete };

export function deleted(
  store: Store,
  request: ApiRequest,
  body: WriteBody,
  { terminate, checkDelete }: DeletionHooks,
) {
  const { resource, namespace, name } = request;
  const { uid, ...options } = deleteOptions(request, body);
  const object = store.get(resource, namespace, name);
  if (uid !== undefined && uid !== object.metadata.uid)
    throw conflict(resource.plural, name, `the UID in the precondition (${uid}) does not match`);
  checkDelete(object);
  const left = options.dryRun ? object : remove(store, request, object, terminate(object, options.grace));
  if (left !== null) return left;
  const details = { name, kind: resource.plural, uid: object.metadata.uid };
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
}

export function deletedAll(
  store: Store,
  request: ApiRequest,
  body: WriteBody,
  { terminate, checkDelete }: DeletionHooks,
) {
  const { resource, namespace } = request;
  const { dryRun, grace } = deleteOptions(request, body);
  const matches = selectionOf(request);
  const found = store
    .list(resource)
    .filter((object) => (namespace === "" || object.metadata.namespace === namespace) && matches(object));
  for (const object of found) checkDelete(object);
  const items = found.map((object) =>
    dryRun ? object : (remove(store, request, object, terminate(object, grace)) ?? object),
  );
  return {
    kind: `${resource.kind}List`,
    apiVersion: apiVersionOf(resource),
    metadata: { resourceVersion: `${store.version}` },
    items,
  };
}

/** The terminating object; null: deleted. */
function remove(
  store: Store,
  { resource }: ApiRequest,
  { metadata: { namespace = "", name } }: ApiObject,
  terminating: Draft | null,
): ApiObject | null {
  if (terminating !== null) return store.update(resource, terminating);
  store.delete(resource, namespace, name);
  return null;
}

function deleteOptions(request: ApiRequest, body: WriteBody) {
  const options = body.bytes.length === 0 ? {} : decoded(body);
  const { gracePeriodSeconds, preconditions, dryRun } = isMap(options) ? options : {};
  const grace = gracePeriodSeconds ?? request.query.get("gracePeriodSeconds") ?? undefined;
  if (grace !== undefined && !Number.isInteger(Number(grace)))
    throw badRequest(`gracePeriodSeconds must be a whole number, not ${JSON.stringify(grace)}`);
  return {
    uid: isMap(preconditions) && typeof preconditions.uid === "string" ? preconditions.uid : undefined,
    grace: grace === undefined ? undefined : Number(grace),
    dryRun: isDryRun(request) || (Array.isArray(dryRun) && dryRun.length > 0),
  };
}
