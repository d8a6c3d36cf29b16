// Reads one stream of watch events: collects its list, forwards its changes, and keeps the version to resume from.
import { ApiFailure } from "./failure.ts";
import { type ListFigures, type Listing, listFigures, tooLarge } from "./list.ts";
import { type Item, isOlder, type WatchedResource } from "./resources.ts";
import type { WatchEvent } from "./watch.ts";

/** Where the objects go. */
export type Sink = {
  /** The complete list. Resolves when all of it is known. */
  replace(items: readonly Item[]): Promise<void>;
  set(item: Item): void;
  gone(item: Item): void;
};

export class Follower {
  /** The objects of a streaming list that is not complete yet; null: the list is complete. */
  collecting: Map<string, Item> | null;
  /** Resume point: everything up to here was received. */
  version: string;
  hasReceived = false;
  /** Version of the last change in this stream, or the one it was opened with. */
  #floor: string;
  readonly #figures: ListFigures;
  readonly #resource: WatchedResource;
  /** Bytes of the streaming list so far. */
  #bytes = 0;

  constructor(version: string | null, resource: WatchedResource, figures: ListFigures = listFigures) {
    this.#resource = resource;
    this.#figures = figures;
    this.collecting = version === null ? new Map() : null;
    this.version = version ?? "";
    this.#floor = this.version;
  }

  /** Returns the whole list when it becomes complete. */
  take(event: WatchEvent, bytes: number, sink: Sink): Listing | null {
    this.hasReceived = true;
    if (this.collecting === null) return this.#follow(event, sink);
    this.#bytes += bytes;
    return this.#collect(this.collecting, event);
  }

  #collect(found: Map<string, Item>, event: WatchEvent): Listing | null {
    const { objects, bytes } = this.#figures;
    if (found.size > objects) throw tooLarge(this.#resource, `it has more than ${objects} objects`);
    if (this.#bytes > bytes) throw tooLarge(this.#resource, `it is larger than ${bytes} bytes`);
    if (event.kind === "bookmark") {
      if (!event.initialEnd) return null;
      this.collecting = null;
      this.version = event.version;
      this.#floor = event.version;
      return { items: [...found.values()], version: event.version };
    }
    const { key } = event.item.reading.who;
    if (event.kind === "set") found.set(key, event.item);
    else found.delete(key);
    return null;
  }

  #follow(event: WatchEvent, sink: Sink): null {
    const version = event.kind === "bookmark" ? event.version : event.item.version;
    // Without a version the watch cannot be resumed: it would send every object again, but no deletions.
    if (version === "") throw new ApiFailure("garbled", "Cannot read the watch: an object has no version");
    // Within a stream versions only grow. A smaller one means that the server's history changed.
    if (isOlder(version, this.#floor)) {
      throw new ApiFailure("rewound", `Cannot continue the watch: version ${version} follows ${this.#floor}`);
    }
    if (event.kind !== "bookmark") {
      if (event.kind === "set") sink.set(event.item);
      else sink.gone(event.item);
      this.#floor = version;
    }
    this.version = version;
    return null;
  }
}
