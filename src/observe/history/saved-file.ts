// A file with a saved history: written as a whole, then appended to.
import type { FileHandle, open } from "node:fs/promises";
import { viewsOf } from "../../explain/view.ts";
import type { HistoryLog } from "../../history/log.ts";
import { changeLine, formatVersion, lineOf } from "./saved-lines.ts";

/** ServicePorts in one View: about a millisecond of work. */
const portsPerView = 200;
/** Written in one call. */
const chunkBytes = 1 << 16;

export class SavedFile {
  readonly #handle: FileHandle;
  /** Size of the checkpoint. */
  readonly #whole: number;
  #appended = 0;
  #written: Promise<void> = Promise.resolve();
  #synced: Promise<void> = Promise.resolve();

  constructor(handle: FileHandle, whole: number) {
    this.#handle = handle;
    this.#whole = whole;
  }

  /** Resolves when the text is on the disk. */
  append(text: string): Promise<void> {
    this.#appended += text.length;
    // A slow disk does not delay what is written next: it outlives this process once it is written.
    const written = this.#written.then(() => this.#handle.appendFile(text));
    this.#written = written;
    this.#synced = Promise.all([written, this.#synced]).then(() => this.#handle.datasync());
    return this.#synced;
  }

  /** Whether as much was appended as would be written again, so that writing costs at most twice as much as appending. */
  isDue(limit: number): boolean {
    return this.#appended > Math.max(limit, this.#whole);
  }

  async close(): Promise<void> {
    await this.#synced.catch(() => {});
    await this.#handle.close();
  }
}

export type OpenFile = typeof open;

/** A new file of these lines. */
export async function writeSavedFile(
  path: string,
  lines: Iterable<string>,
  openFile: OpenFile,
): Promise<SavedFile> {
  const handle = await openFile(path, "w", 0o600);
  let whole = 0;
  try {
    let chunk = "";
    for (const line of lines) {
      chunk += line;
      if (chunk.length < chunkBytes) continue;
      await handle.appendFile(chunk);
      whole += chunk.length;
      chunk = "";
    }
    await handle.appendFile(chunk);
    await handle.datasync();
    return new SavedFile(handle, whole + chunk.length);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** All of the history and its newest state, as of now: what changes while the lines are read is not in them. */
export function linesOf(history: HistoryLog, node: string): Iterable<string> {
  const { beginsAt, dropped, stored, latest, lastSeq } = history;
  return (function* () {
    yield lineOf({ type: "header", version: formatVersion, node, beginsAt: beginsAt!, dropped });
    for (const each of stored) yield changeLine(each, null);
    let views = 0;
    for (const view of viewsOf({ ...latest!, problems: [] }, portsPerView)) {
      views++;
      yield lineOf({ type: "view", view });
    }
    yield lineOf({ type: "checkpoint", seq: lastSeq, views });
  })();
}
