// Finds the manifest files below the given paths, and recognises a change of any of them without reading.
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

export type FoundFile = {
  readonly path: string;
  /** Differs whenever the file, or what a link in its way points to, does. */
  readonly stamp: string;
  /** When it was last written, renamed or made, in ms since 1970. */
  readonly changedAt: number;
};

export type Scan = {
  /** In the order of the paths, then by name. */
  readonly files: readonly FoundFile[];
  /** Named paths that are not there. */
  readonly missing: readonly string[];
  /** What to watch for changes: directories, with a stamp that tells a new one of the same name. */
  readonly folders: readonly FoundFolder[];
};

export type FoundFolder = Omit<FoundFile, "changedAt">;

/** Of a directory, one level; hidden files are skipped, which also hides the inner folders of ConfigMap volumes. */
export async function scan(paths: readonly string[]): Promise<Scan> {
  const files = new Map<string, FoundFile>();
  const folders: FoundFolder[] = [];
  const missing: string[] = [];
  for (const path of paths) {
    const found = await look(path);
    const inside = found?.isFolder ? await filesIn(path) : [];
    // A folder that went while we looked has not lost its files.
    if (found === null || (found.isFolder && (await look(path))?.stamp !== found.stamp)) missing.push(path);
    else if (found.isFolder) {
      folders.push({ path, stamp: found.stamp });
      for (const file of inside) files.set(file.path, file);
    } else files.set(path, { path, stamp: found.stamp, changedAt: found.changedAt });
  }
  return { files: [...files.values()], missing, folders };
}

/** Whether a path is one of these, or directly inside one of these. */
export function isUnder(path: string, named: readonly string[]): boolean {
  return named.some((name) => path === name || path.startsWith(join(name, "/")));
}

async function filesIn(folder: string): Promise<FoundFile[]> {
  const names = (await readdir(folder).catch(() => []))
    .filter((name) => /^[^.].*\.(ya?ml|json)$/i.test(name))
    .sort();
  const found: FoundFile[] = [];
  for (const name of names) {
    const path = join(folder, name);
    const entry = await look(path);
    if (entry !== null && !entry.isFolder)
      found.push({ path, stamp: entry.stamp, changedAt: entry.changedAt });
  }
  return found;
}

/** Follows links. Null when there is nothing. */
async function look(path: string): Promise<(Omit<FoundFile, "path"> & { isFolder: boolean }) | null> {
  try {
    const entry = await stat(path, { bigint: true });
    const { dev, ino, size, mtimeNs, ctimeNs } = entry;
    const isFolder = entry.isDirectory();
    const stamp = isFolder ? `${dev}:${ino}` : `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
    return { isFolder, stamp, changedAt: Number(entry.ctimeMs) };
  } catch {
    return null;
  }
}
