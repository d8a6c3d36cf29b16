// Keeps a copy of one resource up to date: lists, watches, resumes and lists again.
import { initialStatus, type ResourceStatus } from "../source.ts";
import { sleep, type World } from "../world.ts";
import { Backoff, type BackoffFigures, backoffFigures } from "./backoff.ts";
import type { ApiClient } from "./client.ts";
import { ApiFailure, MalformedProtobuf } from "./failure.ts";
import { Follower, type Sink } from "./follower.ts";
import { type ListFigures, type Listing, listAll, listFigures } from "./list.ts";
import { listNewest, type Next, nextAfter } from "./next.ts";
import type { OutageGate } from "./outage-gate.ts";
import type { WatchedResource } from "./resources.ts";
import { type WatchEvent, watchEvents } from "./watch.ts";

export const reflectorFigures = {
  /** Watch timeout: random between 5 and 10 minutes, so that clients do not reconnect at the same time. */
  watchMs: { least: 300_000, most: 600_000 },
  /** Well above the minute between bookmarks: without a byte for this long, the peer is gone. */
  quietMs: 150_000,
  /** Without bookmarks a quiet watch is normal; the server is gone only when it does not end the watch in time. */
  overdueMs: 30_000,
  /** The same while the objects of a streaming list arrive, and for the whole list. */
  initialQuietMs: 30_000,
  initialMs: 120_000,
  /** A watch that ends sooner without an event is a failure; otherwise we would retry in a tight loop. */
  shortMs: 1000,
  /** Consecutive watches that open and deliver nothing before we discard the version and list from scratch. */
  fruitless: 3,
  /** Minimum time between two lists after watches that we closed ourselves. */
  abandonedMs: 1000,
  /** Pause before the next request for an optional resource that is not served. */
  absentMs: 300_000,
  backoff: backoffFigures as BackoffFigures,
  list: listFigures as ListFigures,
};

export type ReflectorFigures = typeof reflectorFigures;

export type ReflectorParts = {
  readonly client: ApiClient;
  readonly resource: WatchedResource;
  readonly sink: Sink;
  readonly world: World;
  /** Shared by all clients of the same server. */
  readonly outage: OutageGate;
  readonly figures?: ReflectorFigures;
  /** Called when `status` has changed in a way that consumers wait for. */
  readonly onProgress?: () => void;
};

export class Reflector {
  readonly #parts: ReflectorParts;
  readonly #figures: ReflectorFigures;
  readonly #backoff: Backoff;
  #next: Next = listNewest;
  /** Until the server refuses or ignores streaming lists. */
  #streams = true;
  /** Whether this server has sent bookmarks for this resource; for one that never changes it may not. */
  #bookmarks = false;
  /** Whether the next request is for JSON only, because the last response was protobuf that could not be decoded. */
  #jsonOnly = false;
  #fruitless = 0;
  /** When we last closed a watch ourselves. */
  #abandonedAt = Number.NEGATIVE_INFINITY;
  /** When we last listed again without a pause. */
  #hurriedAt = Number.NEGATIVE_INFINITY;
  #status: ResourceStatus = initialStatus;

  constructor(parts: ReflectorParts) {
    this.#parts = parts;
    this.#figures = parts.figures ?? reflectorFigures;
    this.#backoff = new Backoff(parts.world, this.#figures.backoff);
  }

  get resource(): WatchedResource {
    return this.#parts.resource;
  }

  get status(): ResourceStatus {
    return this.#status;
  }

  /** Resolves only after abort; rejects only on a bug. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#step(signal);
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof ApiFailure)) throw error;
        const pause = this.#pauseAfter(error);
        if (pause > 0) await this.#rest(pause, error, signal).catch(() => {});
      }
    }
  }

  /** A request without any response is retried when another request gets one. */
  #rest(ms: number, { kind, code }: ApiFailure, signal: AbortSignal): Promise<void> {
    const { world, outage } = this.#parts;
    return kind === "lost" && code === 0 ? outage.wait(ms, signal) : sleep(world.clock, ms, signal);
  }

  async #step(signal: AbortSignal): Promise<void> {
    const next = this.#next;
    if (next.kind === "resume") return this.#watch(next.version, signal);
    const since = next.kind === "relist" ? next.version : null;
    if (this.#streams) return this.#streamingList(since, signal);
    const { client, resource } = this.#parts;
    await this.#replace(await listAll(client, resource, since, signal, this.#figures.list, !this.#jsonOnly));
  }

  #watch(version: string, signal: AbortSignal): Promise<void> {
    return this.#stream({ resourceVersion: version }, new Follower(version, this.resource), signal);
  }

  /** A watch that starts with all objects; they count only after the server has marked the list complete. */
  async #streamingList(since: string | null, signal: AbortSignal): Promise<void> {
    const query = {
      sendInitialEvents: "true",
      resourceVersionMatch: "NotOlderThan",
      ...(since === null ? {} : { resourceVersion: since }),
    };
    await this.#stream(query, new Follower(null, this.resource, this.#figures.list), signal);
  }

  async #stream(query: Record<string, string>, follower: Follower, signal: AbortSignal): Promise<void> {
    const { client, resource, world } = this.#parts;
    const { least, most } = this.#figures.watchMs;
    const seconds = Math.round((least + world.random() * (most - least)) / 1000);
    const protobuf = !this.#jsonOnly;
    const requestedAt = world.clock.steady();
    let openedAt: number | null = null;
    try {
      await watchEvents(
        {
          client,
          clock: world.clock,
          resource,
          query: { ...query, allowWatchBookmarks: "true", timeoutSeconds: `${seconds}` },
          protobuf,
          onOpen: (encoding) => {
            openedAt = world.clock.steady();
            this.#parts.outage.over();
            this.#note({ watchSince: world.clock.wall(), heardAt: openedAt, failing: false, encoding });
          },
          quietMs: () => this.#quietMs(follower, requestedAt, seconds * 1000),
        },
        (event, bytes) => this.#take(follower, event, bytes),
        signal,
      );
    } catch (error) {
      // The request succeeded: a stream that broke later is no failure of the request.
      const isAnswered = openedAt !== null && follower.collecting === null;
      if (isAnswered && error instanceof ApiFailure && error.kind === "lost")
        throw new LostWatch("lost", error.message, { cause: error });
      throw error;
    } finally {
      if (openedAt !== null) {
        this.#backoff.held(world.clock.steady() - openedAt);
        this.#note({ watchSince: null, reconnects: this.#status.reconnects + 1 });
      }
    }
    if (follower.collecting !== null)
      throw new ApiFailure("lost", "Lost the list: it ended before it was complete");
    if (!follower.hasReceived && world.clock.steady() - requestedAt < this.#figures.shortMs) {
      throw new ApiFailure("lost", "Lost the watch: it ended immediately without an event");
    }
  }

  #quietMs(follower: Follower, requestedAt: number, watchMs: number): number {
    const { quietMs, overdueMs, initialMs, initialQuietMs } = this.#figures;
    const age = this.#parts.world.clock.steady() - requestedAt;
    if (follower.collecting !== null) return Math.max(0, Math.min(initialMs - age, initialQuietMs));
    return this.#bookmarks ? quietMs : Math.max(quietMs, watchMs + overdueMs - age);
  }

  #take(follower: Follower, event: WatchEvent, bytes: number): Promise<void> | undefined {
    const { clock } = this.#parts.world;
    this.#status = { ...this.#status, lastEventAt: clock.wall(), heardAt: clock.steady() };
    this.#fruitless = 0;
    if (event.kind === "bookmark" && !event.initialEnd) this.#bookmarks = true;
    const complete = follower.take(event, bytes, this.#parts.sink);
    if (complete !== null) return this.#replace(complete);
    if (follower.collecting === null) this.#next = { kind: "resume", version: follower.version };
    return undefined;
  }

  async #replace({ items, version }: Listing): Promise<void> {
    this.#jsonOnly = false;
    await this.#parts.sink.replace(items);
    this.#next = { kind: "resume", version };
    this.#note({
      synced: true,
      refused: false,
      failing: false,
      relists: this.#status.relists + (this.#status.synced ? 1 : 0),
    });
  }

  /** Decides what comes next and how long to wait before it. */
  #pauseAfter(failure: ApiFailure): number {
    const listing = this.#next.kind !== "resume";
    const refused = failure.code >= 400 && failure.code < 500 && failure.kind === "refused";
    this.#note({ ...this.#reported(failure), refused, failures: this.#status.failures + 1 });
    // Allow the next watch more time: this server may have stopped sending bookmarks.
    if (failure.kind === "silent") this.#bookmarks = false;
    if (failure instanceof MalformedProtobuf) this.#jsonOnly = true;
    if (listing && this.#streams && isAboutStreaming(failure)) {
      this.#streams = false;
      return 0;
    }
    const before = this.#next;
    this.#next = nextAfter(before, failure);
    if (failure.kind === "silent" || failure.kind === "fruitless") this.#fruitless++;
    if (this.#fruitless >= this.#figures.fruitless) this.#next = listNewest;
    return this.#pause(failure, before);
  }

  #reported(failure: ApiFailure): Pick<ResourceStatus, "lastError" | "lastRestart" | "failing"> {
    const at = this.#parts.world.clock.wall();
    const { lastError, lastRestart, failing } = this.#status;
    if (this.#isExpected(failure))
      return { lastError, failing, lastRestart: { reason: failure.message, at } };
    return { lastError: { message: failure.message, at }, failing: true, lastRestart };
  }

  /** Part of normal operation: it becomes an error only when the request after it fails. */
  #isExpected(failure: ApiFailure): boolean {
    if (failure instanceof LostWatch) return true;
    const isAbsent = failure.code === 404 && this.resource.optional;
    const isOutdated = ["expired", "ahead"].includes(failure.kind) && this.#next.kind !== "list";
    return isAbsent || isOutdated || failure.kind === "silent" || failure.kind === "rewound";
  }

  #pause(failure: ApiFailure, before: Next): number {
    const { world, resource } = this.#parts;
    if (failure.kind === "silent" || failure.kind === "rewound") return this.#pauseAbandoned();
    if (failure instanceof LostWatch) return this.#backoff.same();
    const pause = Math.max(this.#backoff.next(), failure.waitMs);
    if (failure.code === 404 && resource.optional) {
      return Math.max(pause, this.#figures.absentMs * (1 + world.random()));
    }
    if (failure.kind !== "expired" && failure.kind !== "ahead") return pause;
    // An expired version does not mean that the server is unhealthy, unless it happens repeatedly.
    const now = world.clock.steady();
    const often = now - this.#hurriedAt < this.#figures.backoff.resetMs;
    if (often && before.kind !== "relist") return pause;
    this.#hurriedAt = now;
    return 0;
  }

  /** No pause, unless every watch has to be closed. */
  #pauseAbandoned(): number {
    const now = this.#parts.world.clock.steady();
    const pause = Math.max(0, this.#abandonedAt + this.#figures.abandonedMs - now);
    this.#abandonedAt = now + pause;
    return pause;
  }

  #note(change: Partial<ResourceStatus>): void {
    this.#status = { ...this.#status, ...change };
    this.#parts.onProgress?.();
  }
}

/** A watch that was open and whose connection broke. */
class LostWatch extends ApiFailure {}

/** How servers without streaming lists respond: with an error, or not at all. */
function isAboutStreaming(failure: ApiFailure): boolean {
  return (
    failure.kind === "silent" ||
    failure.kind === "fruitless" ||
    (failure.kind === "refused" && [400, 405, 422, 501].includes(failure.code))
  );
}
