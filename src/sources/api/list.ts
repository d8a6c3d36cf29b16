// Lists all objects of a resource, in pages where possible.
import { nextTurn } from "../../model/steps.ts";
import type { ApiClient, ApiRequest } from "./client.ts";
import type { Encoding } from "./encoding/encoding.ts";
import { ApiFailure, isMap } from "./failure.ts";
import { type Item, itemOf, type WatchedResource } from "./resources.ts";

export type Listing = { readonly items: readonly Item[]; readonly version: string };

const pageSize = "500";
/** About as many as are read in 5 ms. */
const itemsPerTurn = 500;

/** Several times what the largest clusters have: beyond this the server's list has no end. */
export const listFigures = { pages: 2_500, objects: 1_000_000, bytes: 1 << 29 };

export type ListFigures = typeof listFigures;

/** With `since`, any state that is not older; without, the newest. */
export async function listAll(
  client: ApiClient,
  resource: WatchedResource,
  since: string | null,
  signal: AbortSignal,
  figures: ListFigures = listFigures,
  protobuf = true,
): Promise<Listing> {
  const read = (options: Options) => readPages({ client, resource, protobuf, figures }, options, signal);
  // Only without a limit may the server answer from its cache when a version is given.
  if (since !== null) {
    return read({ resourceVersion: since, resourceVersionMatch: "NotOlderThan" });
  }
  try {
    return await read({ limit: pageSize });
  } catch (error) {
    // The version of these pages expired while they were read; a list without pages cannot expire.
    if (error instanceof LatePage) return read({});
    throw error;
  }
}

/** A page after the first has expired. */
class LatePage extends ApiFailure {}

type Options = Readonly<Record<string, string>>;

type ListRequest = {
  readonly client: ApiClient;
  readonly resource: WatchedResource;
  readonly figures: ListFigures;
  /** Whether responses may be in protobuf. */
  readonly protobuf: boolean;
};

async function readPages(from: ListRequest, options: Options, signal: AbortSignal): Promise<Listing> {
  const { resource, figures } = from;
  const items: Item[] = [];
  let version = "";
  let next = options;
  const budget = { bytes: figures.bytes };
  for (let pages = 1; ; pages++) {
    if (pages > figures.pages) throw tooLarge(resource, `it has more than ${figures.pages} pages`);
    const page = await readPage(from, next, pages === 1, budget, signal);
    if (items.length + page.items.length > figures.objects)
      throw tooLarge(resource, `it has more than ${figures.objects} objects`);
    for (const raw of page.items) {
      items.push(itemOf(resource.kind, raw, page.encoding.slim(resource.kind, raw)));
      // A list without pages may be all of the cluster.
      if (items.length % itemsPerTurn !== 0) continue;
      await nextTurn();
      signal.throwIfAborted();
    }
    version = page.version;
    // Fewer items than the limit, even none, do not mean the end: only a missing continue token does.
    if (page.token === "") return { items, version };
    if (page.token === next.continue)
      throw new ApiFailure("garbled", `Cannot list ${resource.plural}: the continue token repeats`);
    next = { limit: pageSize, continue: page.token };
  }
}

export function tooLarge({ plural }: WatchedResource, why: string): ApiFailure {
  return new ApiFailure("garbled", `Cannot list ${plural}: ${why}`);
}

type Page = {
  readonly items: readonly unknown[];
  readonly version: string;
  readonly token: string;
  readonly encoding: Encoding;
};

async function readPage(
  { client, resource, protobuf }: ListRequest,
  options: Options,
  first: boolean,
  budget: { bytes: number },
  signal: AbortSignal,
): Promise<Page> {
  try {
    const request: ApiRequest = {
      path: resource.path,
      query: { ...resource.selectors, ...options },
      protobuf,
      mostBytes: budget.bytes,
      onBytes(bytes) {
        budget.bytes -= bytes;
      },
    };
    const { bytes, encoding } = await client.read(request, signal);
    return { ...pageOf(encoding.list(resource.kind, bytes), resource), encoding };
  } catch (error) {
    if (!first && error instanceof ApiFailure && error.kind === "expired")
      throw new LatePage("expired", error.message);
    throw error;
  }
}

function pageOf(answer: unknown, resource: WatchedResource) {
  const metadata = isMap(answer) && isMap(answer.metadata) ? answer.metadata : {};
  const items = isMap(answer) ? (answer.items ?? []) : undefined;
  const version = metadata.resourceVersion;
  if (!Array.isArray(items) || typeof version !== "string" || version === "") {
    throw new ApiFailure("garbled", `Cannot list ${resource.plural}: the response is not a list`);
  }
  return { items, version, token: typeof metadata.continue === "string" ? metadata.continue : "" };
}
