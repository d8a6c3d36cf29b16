// Answers watch requests: past changes, live changes, bookmarks, and streaming lists.
import type { Encoder } from "../http/encoder.ts";
import { Failure, invalid, statusOf } from "../http/failure.ts";
import { type ApiRequest, isOn } from "../http/request.ts";
import type { Wire } from "../http/wire.ts";
import type { ApiObject } from "../objects/object.ts";
import { apiVersionOf } from "../objects/resources.ts";
import type { Matcher } from "../objects/selectors.ts";
import { type Change, type Store, withVersion } from "../objects/store.ts";
import { requestedVersion, selectionOf } from "./list.ts";

export type WatchOptions = {
  readonly bookmarkMs: number;
  /** Whether `sendInitialEvents` is supported; an old server ignores it. */
  readonly knowsInitialEvents: boolean;
  readonly refusesInitialEvents: boolean;
  /** How objects are shown: as they are, or as rows of a table. */
  readonly show: (object: ApiObject) => object;
  readonly encoder: Encoder;
};

/** An open watch; tests inspect it. */
export type OpenWatch = {
  readonly request: ApiRequest;
  readonly wire: Wire;
  /** Sends any event now. */
  emit(type: string, object: object): void;
  /** Sends a bookmark now, of this version or an invented one. */
  bookmark(version?: number): void;
};

type WatchEvent = { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: ApiObject };

/** Validates the options, before the stream opens. */
export function checkWatch(store: Store, request: ApiRequest, options: WatchOptions): void {
  const { query } = request;
  selectionOf(request);
  if (!query.has("sendInitialEvents") || !options.knowsInitialEvents) return;
  const forbid = (why: string) => invalid("ListOptions", "", `Forbidden: ${why}`, "sendInitialEvents");
  if (options.refusesInitialEvents) {
    throw forbid("sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled");
  }
  if (query.get("resourceVersionMatch") !== "NotOlderThan") {
    throw forbid("resourceVersionMatch NotOlderThan is required with sendInitialEvents");
  }
  if (isOn(query, "sendInitialEvents")) requestedVersion(store, query);
}

/** Streams until the client disconnects or the timeout expires. */
export function serveWatch(store: Store, request: ApiRequest, wire: Wire, options: WatchOptions): OpenWatch {
  const { resource, namespace, query } = request;
  const selected = selectionOf(request);
  const matches: Matcher = (object) =>
    (namespace === "" || object.metadata.namespace === namespace) && selected(object);
  const { event } = options.encoder;
  const emit = (type: string, object: object) => wire.send(event(type, object));
  const bookmark = (version: number = store.version, annotations?: Record<string, string>) =>
    emit("BOOKMARK", {
      kind: resource.kind,
      apiVersion: apiVersionOf(resource),
      metadata: {
        resourceVersion: `${version}`,
        creationTimestamp: null,
        ...(annotations ? { annotations } : {}),
      },
    });

  const streaming = options.knowsInitialEvents && isOn(query, "sendInitialEvents");
  const from = Number(query.get("resourceVersion") ?? "");
  try {
    if (streaming || from === 0) {
      const found = store.list(resource).filter(matches);
      wire.send(Buffer.concat(found.map((object) => event("ADDED", options.show(object)))));
      if (streaming) bookmark(store.version, { "k8s.io/initial-events-end": "true" });
    } else {
      for (const change of store.since(resource, from)) send(change);
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // An expired version is reported inside the stream, not as HTTP status.
    emit("ERROR", statusOf(error));
    wire.end();
    return { request, wire, emit, bookmark };
  }

  const unsubscribe = store.subscribe(
    (change) => change.resource === resource && change.version > from && send(change),
  );
  const bookmarks = isOn(query, "allowWatchBookmarks");
  const bookmarkTimer = setInterval(() => bookmarks && bookmark(), options.bookmarkMs);
  const timeoutMs = Number(query.get("timeoutSeconds") ?? 1800) * 1000;
  const timeout = setTimeout(() => {
    if (bookmarks) bookmark();
    wire.end();
  }, timeoutMs);
  wire.onClose(() => {
    unsubscribe();
    clearInterval(bookmarkTimer);
    clearTimeout(timeout);
  });
  return { request, wire, emit, bookmark };

  function send(change: Change): void {
    const found = eventOf(change, matches);
    if (found) emit(found.type, options.show(found.object));
  }
}

/** The event for a watch with selectors: an object that stops matching is reported as deleted. */
function eventOf({ before, after, version }: Change, matches: Matcher): WatchEvent | null {
  const was = before !== null && matches(before);
  const is = after !== null && matches(after);
  if (is) return { type: was ? "MODIFIED" : "ADDED", object: after };
  return was ? { type: "DELETED", object: withVersion(before, version) } : null;
}
