// The names of all Nodes of a cluster, for the error when a requested Node does not exist.
import { syncDisk } from "./files/disk.ts";
import { parseManifests } from "./files/parse.ts";
import { scan } from "./files/scan.ts";
import { openApi, type SourceSpec } from "./index.ts";
import type { World } from "./world.ts";

/** Short, since the names are only a hint. */
const timeoutMs = 4_000;

/** Sorted; empty when they cannot be read. */
export async function nodeNames(spec: SourceSpec, world: World): Promise<string[]> {
  try {
    const names = await (spec.kind === "files" ? inFiles(spec.paths) : inApi(spec, world));
    return names.sort();
  } catch {
    return [];
  }
}

/** Files without a Node, as most are, are not parsed for it. */
async function inFiles(paths: readonly string[]): Promise<string[]> {
  const names: string[] = [];
  for (const { path, bytes: size } of (await scan(paths, syncDisk)).files) {
    // A file without a size may be a pipe, which can be read only once.
    if (size === 0) continue;
    const text = (await syncDisk.read(path)).toString("utf8");
    if (!/\bkind["']?:\s*["']?Node(List)?\b/.test(text)) continue;
    const parsed = parseManifests(path, text);
    if (parsed.kind !== "good") continue;
    for (const { reading } of parsed.objects) if (reading.kind === "Node") names.push(reading.who.name);
  }
  return names;
}

async function inApi(spec: Extract<SourceSpec, { kind: "api" }>, world: World): Promise<string[]> {
  const client = await openApi(spec, world);
  const list = await client.json({ method: "GET", path: "/api/v1/nodes" }, AbortSignal.timeout(timeoutMs));
  const { items = [] } = list as { items?: { metadata?: { name?: string } }[] };
  return items.flatMap(({ metadata }) => metadata?.name ?? []);
}
