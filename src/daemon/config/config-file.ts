// Reads the configuration file and watches it for changes.
import { type FSWatcher, watch } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";

export type WatchedFile = {
  readonly path: string;
  readonly text: string;
  /** Resolves with the reason when the process must end; changes since the file was read count. */
  readonly changed: () => Promise<string>;
  readonly close: () => Promise<void>;
};

/**
 * Reads and watches the file itself, as kube-proxy does: writing to it or renaming it counts; deleting it, replacing
 * it by another file or changing its attributes does not.
 */
export async function openConfigFile(path: string): Promise<WatchedFile> {
  const file = await open(path, "r");
  const watcher = watch(path, { persistent: false });
  const reading = contentOf(file);
  const reason = firstReason(watcher, async () => reasonToEnd(path, file, await reading));
  // A failed watch ends the process only if a caller waits for changes.
  reason.catch(() => {});
  const text = await reading;
  const close = async () => {
    watcher.close();
    await file.close();
  };
  return { path, text, changed: () => reason, close };
}

function firstReason(watcher: FSWatcher, check: () => Promise<string | null>): Promise<string> {
  return new Promise((found, failed) => {
    let checking = Promise.resolve();
    watcher.on("error", failed);
    // One check at a time, so that the last one sees everything that happened.
    watcher.on("change", () => {
      checking = checking.then(check).then((reason) => {
        if (reason !== null) found(reason);
      }, failed);
    });
  });
}

/** The events of fs.watch do not distinguish a write from a chmod, or a rename from a removal; the open file does. */
async function reasonToEnd(path: string, file: FileHandle, text: string): Promise<string | null> {
  const opened = await file.stat();
  if (!opened.isFile()) return null;
  const { ino, dev } = opened;
  const changed = (await contentOf(file)) !== text;
  const there = await stat(path).catch(() => null);
  const moved = there?.ino !== ino || there.dev !== dev;
  // Read last: a file that another one replaced has no link left by the time its path leads elsewhere.
  const { nlink } = await file.stat();
  if (nlink === 0) return null;
  if (changed) return `the content of ${path} changed`;
  return moved ? `${path} was renamed` : null;
}

/** A pipe has no size and can be read once; a file may be read again, so from its start. */
async function contentOf(file: FileHandle): Promise<string> {
  const stat = await file.stat();
  if (!stat.isFile()) return file.readFile("utf8");
  const { size } = stat;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, 0);
  return buffer.toString("utf8", 0, bytesRead);
}
