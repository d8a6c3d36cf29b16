// One watch request: its events, one by one, until the server ends it or no more bytes arrive.
import type { Clock } from "../world.ts";
import type { ApiClient, ApiRequest } from "./client.ts";
import type { Encoding } from "./encoding/encoding.ts";
import { ApiFailure, failureOf, isMap } from "./failure.ts";
import { type Item, itemOf, type WatchedResource } from "./resources.ts";

export type WatchEvent =
  | { readonly kind: "set"; readonly item: Item }
  | { readonly kind: "gone"; readonly item: Item }
  | { readonly kind: "bookmark"; readonly version: string; readonly initialEnd: boolean };

export type WatchRequest = {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly resource: WatchedResource;
  readonly query: Readonly<Record<string, string>>;
  /** Whether the response may be in protobuf. */
  readonly protobuf: boolean;
  readonly onOpen: (encoding: Encoding["name"]) => void;
  /** Idle timeout; read again after every chunk. */
  readonly quietMs: () => number;
};

/** The largest object an API server accepts is a few MB. */
const longestEvent = 16 << 20;
const headMs = 30_000;

/**
 * Resolves when the server ends the stream; an unfinished last event is then dropped. Rejects with ApiFailure. The next event waits for
 * the promise that `handle` returns, if it returns one.
 */
export async function watchEvents(
  { client, clock, resource, query, protobuf, onOpen, quietMs }: WatchRequest,
  handle: (event: WatchEvent, bytes: number) => Promise<void> | undefined,
  signal: AbortSignal,
): Promise<void> {
  const request: ApiRequest = {
    path: resource.path,
    query: { ...resource.selectors, watch: "true", ...query },
    headMs,
    protobuf,
  };
  const guard = guardOf(clock, signal);
  try {
    const { body, encoding } = await client.stream(request, guard.signal);
    onOpen(encoding.name);
    const split = encoding.splitter(longestEvent);
    guard.expectBytes(quietMs());
    for await (const chunk of body) {
      for (const bytes of split(chunk as Buffer)) {
        const event = eventOf(bytes, encoding, resource);
        const handled = event === null ? undefined : handle(event, bytes.length);
        if (handled !== undefined) await handled;
      }
      guard.expectBytes(quietMs());
    }
  } catch (error) {
    throw guard.signal.aborted ? guard.signal.reason : transportFailure(error);
  } finally {
    guard.release();
  }
}

/** Aborts when the outer signal does, or when no bytes come for too long. */
function guardOf(clock: Clock, signal: AbortSignal) {
  const inner = new AbortController();
  const stop = () => inner.abort(signal.reason);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  let cancel = () => {};
  return {
    signal: inner.signal,
    expectBytes(ms: number) {
      cancel();
      cancel = clock.after(ms, () =>
        inner.abort(new ApiFailure("silent", `No bytes from the watch for ${Math.round(ms / 1000)} s`)),
      );
    },
    release() {
      cancel();
      signal.removeEventListener("abort", stop);
    },
  };
}

function eventOf(bytes: Buffer, encoding: Encoding, { kind }: WatchedResource): WatchEvent | null {
  if (bytes.length === 0) return null;
  const { type, object } = encoding.event(kind, bytes);
  switch (type) {
    case "ADDED":
    case "MODIFIED":
      return { kind: "set", item: itemOf(kind, object, encoding.slim(kind, object)) };
    case "DELETED":
      return { kind: "gone", item: itemOf(kind, object, encoding.slim(kind, object)) };
    case "BOOKMARK":
      return bookmarkOf(object);
    case "ERROR":
      throw eventFailure(object);
    default:
      // Ignore event types of later API versions.
      return null;
  }
}

/** An error event inside a stream: the request itself was accepted. */
function eventFailure(status: unknown): ApiFailure {
  const failure = failureOf(500, status);
  if (failure.kind !== "refused") return failure;
  return new ApiFailure("fruitless", `Lost the watch: ${failure.message}`, { code: failure.code });
}

function bookmarkOf(object: unknown): WatchEvent {
  const metadata = isMap(object) && isMap(object.metadata) ? object.metadata : {};
  const version = metadata.resourceVersion;
  if (typeof version !== "string" || version === "") {
    throw new ApiFailure("garbled", "Cannot read the watch: a bookmark has no version");
  }
  const marks = isMap(metadata.annotations) ? metadata.annotations : {};
  return { kind: "bookmark", version, initialEnd: marks["k8s.io/initial-events-end"] === "true" };
}

/** Errors of streams have a code; an error without one is a bug and is thrown unchanged. */
function transportFailure(error: unknown): unknown {
  if (error instanceof ApiFailure) return error;
  const { code, message } = error as Error & { code?: unknown };
  if (typeof code !== "string") return error;
  return new ApiFailure("lost", `Lost the watch: ${message === "" ? code : message}`, { cause: error });
}
