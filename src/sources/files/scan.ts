// Finds the manifest files below the given paths, and detects changes without reading them.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { mapConcurrently } from "../../model/map-concurrently.ts";
import { asyncDisk, type Disk } from "./disk.ts";

export type FoundFile = {
  readonly path: string;
  /** Differs whenever the file, or the target of a link in its path, does. */
  readonly stamp: string;
  /** When it was last written, renamed or made, in ms since 1970. */
  readonly changedAt: number;
  readonly bytes: number;
};

export type Scan = {
  /** In the order of the paths, then by name. */
  readonly files: readonly FoundFile[];
  /** Named paths that do not exist. */
  readonly missing: readonly string[];
  /** Directories to watch, with a stamp that distinguishes a new one of the same name. */
  readonly folders: readonly FoundFolder[];
};

export type FoundFolder = Pick<FoundFile, "path" | "stamp">;

/** Of a directory, one level; hidden files are skipped, which also hides the inner folders of ConfigMap volumes. */
export async function scan(paths: readonly string[], disk: Disk = asyncDisk): Promise<Scan> {
  const files = new Map<string, FoundFile>();
  const folders: FoundFolder[] = [];
  const missing: string[] = [];
  for (const path of paths) {
    const found = await entryAt(path, disk);
    const inside = found?.isFolder ? await filesIn(path, disk) : [];
    // A folder removed during the scan has not lost its files.
    if (found === null || (found.isFolder && (await entryAt(path, disk))?.stamp !== found.stamp))
      missing.push(path);
    else if (found.isFolder) {
      folders.push({ path, stamp: found.stamp });
      for (const file of inside) files.set(file.path, file);
    } else files.set(path, fileAt(path, found));
  }
  return { files: [...files.values()], missing, folders };
}

/** Whether a path is one of these, or directly inside one of these. */
export function isUnder(path: string, named: readonly string[]): boolean {
  return named.some((name) => path === name || path.startsWith(join(name, "/")));
}

async function filesIn(folder: string, disk: Disk): Promise<FoundFile[]> {
  const names = (await readdir(folder).catch(() => []))
    .filter((name) => /^[^.].*\.(ya?ml|json)$/i.test(name))
    .sort();
  const found = await mapConcurrently(names, async (name) => {
    const path = join(folder, name);
    const entry = await entryAt(path, disk);
    return entry === null || entry.isFolder ? [] : [fileAt(path, entry)];
  });
  return found.flat();
}

/** Paths that do not exist. */
export async function missingAmong(paths: readonly string[]): Promise<string[]> {
  const found = await mapConcurrently(paths, (path) => entryAt(path, asyncDisk));
  return paths.filter((_, i) => found[i] === null);
}

type Entry = Omit<FoundFile, "path"> & { readonly isFolder: boolean };

function fileAt(path: string, { stamp, changedAt, bytes }: Entry): FoundFile {
  return { path, stamp, changedAt, bytes };
}

/** Follows links. Null when there is nothing. */
async function entryAt(path: string, disk: Disk): Promise<Entry | null> {
  try {
    const entry = await disk.stat(path);
    const { dev, ino, size, mtimeNs, ctimeNs } = entry;
    const isFolder = entry.isDirectory();
    const stamp = isFolder ? `${dev}:${ino}` : `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
    return { isFolder, stamp, changedAt: Number(entry.ctimeMs), bytes: Number(size) };
  } catch {
    return null;
  }
}
