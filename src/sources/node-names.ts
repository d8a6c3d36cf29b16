// All Nodes of a cluster: their names, for the error when a requested Node does not exist, and their zones.
import { labels } from "../manifests/objects.ts";
import type { ApiClient } from "./api/client.ts";
import { syncDisk } from "./files/disk.ts";
import { parseManifests } from "./files/parse.ts";
import { scan } from "./files/scan.ts";
import { openApi, type SourceSpec } from "./index.ts";
import type { World } from "./world.ts";

/** A Node; the zone is empty when it has none. */
export type NodePlace = { readonly nodeName: string; readonly zone: string };

/** Short, since the names are only a hint. */
const timeoutMs = 4_000;
/** A Node has some 10 kB. */
const pageSize = 250;

/** Sorted; empty when they cannot be read. */
export async function nodeNames(spec: SourceSpec, world: World): Promise<string[]> {
  return (await placesOf(spec, world)).map(({ nodeName }) => nodeName);
}

/** Sorted by name; empty when they cannot be read. */
export async function placesOf(spec: SourceSpec, world: World): Promise<readonly NodePlace[]> {
  try {
    const places = await (spec.kind === "files" ? inFiles(spec.paths) : inApi(spec, world));
    return places.sort((a, b) => (a.nodeName < b.nodeName ? -1 : 1));
  } catch {
    return [];
  }
}

/** Files without a Node, as most are, are not parsed for it. */
async function inFiles(paths: readonly string[]): Promise<NodePlace[]> {
  const places: NodePlace[] = [];
  for (const { path, bytes: size } of (await scan(paths, syncDisk)).files) {
    // A file without a size may be a pipe, which can be read only once.
    if (size === 0) continue;
    const text = (await syncDisk.read(path)).toString("utf8");
    if (!/\bkind["']?:\s*["']?Node(List)?\b/.test(text)) continue;
    const parsed = parseManifests(path, text);
    if (parsed.kind !== "good") continue;
    for (const { reading } of parsed.objects)
      if (reading.kind === "Node")
        places.push({ nodeName: reading.who.name, zone: reading.parsed.value?.zone ?? "" });
  }
  return places;
}

async function inApi(spec: Extract<SourceSpec, { kind: "api" }>, world: World): Promise<NodePlace[]> {
  const client = await openApi(spec, world);
  try {
    return await listed(client, AbortSignal.timeout(timeoutMs));
  } finally {
    client.close();
  }
}

/** In pages: a daemon may ask, and parsing thousands of Nodes at a time would delay its Syncs. */
async function listed(client: ApiClient, signal: AbortSignal): Promise<NodePlace[]> {
  const places: NodePlace[] = [];
  let next: Readonly<Record<string, string>> | null = {};
  while (next !== null) {
    const query: Readonly<Record<string, string>> = { limit: String(pageSize), ...next };
    const list = await client.json({ path: "/api/v1/nodes", query }, signal);
    const { items = [], metadata } = list as NodeList;
    places.push(...items.flatMap(placeOf));
    next = metadata?.continue ? { continue: metadata.continue } : null;
  }
  return places;
}

function placeOf({ metadata }: NodeItem): NodePlace[] {
  return metadata?.name === undefined
    ? []
    : [{ nodeName: metadata.name, zone: metadata.labels?.[labels.zone] ?? "" }];
}

type NodeList = {
  readonly items?: readonly NodeItem[];
  readonly metadata?: { readonly continue?: string };
};

type NodeItem = {
  readonly metadata?: { readonly name?: string; readonly labels?: Readonly<Record<string, string>> };
};
