// Watches folders for changes with inotify; polling finds the rest.
import { type FSWatcher, watch } from "node:fs";
import type { FoundFolder } from "./scan.ts";

export class FolderWatch {
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Watches exactly these folders. */
  follow(folders: readonly FoundFolder[]): void {
    const wanted = new Map(folders.map((folder) => [`${folder.path} ${folder.stamp}`, folder.path]));
    for (const id of this.#watchers.keys()) if (!wanted.has(id)) this.#drop(id);
    for (const [id, path] of wanted) if (!this.#watchers.has(id)) this.#add(id, path);
  }

  close(): void {
    for (const id of [...this.#watchers.keys()]) this.#drop(id);
  }

  #add(id: string, path: string): void {
    try {
      const watcher = watch(path, { persistent: false }, this.#onChange);
      watcher.on("error", () => this.#drop(id));
      this.#watchers.set(id, watcher);
    } catch {
      // The limit of watches is reached, or the folder is gone: polling finds changes.
    }
  }

  #drop(id: string): void {
    this.#watchers.get(id)?.close();
    this.#watchers.delete(id);
  }
}
