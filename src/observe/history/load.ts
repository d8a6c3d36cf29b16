// Reads a saved history: its changes, and the state after the last of them.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { snapshotOf, type View } from "../../explain/view.ts";
import type { Change } from "../../history/change.ts";
import type { Dropped, Written } from "../../history/entry.ts";
import { asciiText, type Moment, type Stored } from "../../history/log.ts";
import { Past } from "../../history/past.ts";
import type { Family } from "../../model/address.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { formatVersion, readLine, type SavedLine } from "./saved-lines.ts";

export type Saved = {
  readonly stored: readonly Stored[];
  readonly beginsAt: number;
  readonly dropped: Dropped | null;
  /** After the last change. */
  readonly state: Snapshot;
  /** Whether the last line was cut off, as when the process or the machine ended while it was written. */
  readonly torn: boolean;
};

/** The file is not a history of this node that can be used; the message is the reason. */
export class CorruptHistory extends Error {}

/** Throws CorruptHistory, or the error of the file system. */
export async function loadHistory(path: string, node: string, now: Moment): Promise<Saved> {
  const reader = new SavedReader(node, now);
  try {
    for await (const line of linesOf(path)) reader.take(line);
    return reader.finish();
  } catch (error) {
    const { syscall, message } = error as NodeJS.ErrnoException;
    if (syscall !== undefined || error instanceof CorruptHistory) throw error;
    // The lines are intact, but not what they should be.
    throw new CorruptHistory(`it cannot be understood: ${message}`);
  }
}

async function* linesOf(path: string): AsyncGenerator<string> {
  const input = createReadStream(path, "utf8");
  // An error of the stream ends the interface without one of its own.
  const failed = new Promise<never>((_, reject) => input.once("error", reject));
  failed.catch(() => {});
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await Promise.race([lines.next(), failed]);
    if (done === true) break;
    yield value;
  }
  if (input.errored !== null) throw input.errored;
}

class SavedReader {
  readonly #node: string;
  readonly #now: Moment;
  #header: Extract<SavedLine, { type: "header" }> | null = null;
  readonly #stored = new Map<number, Stored>();
  readonly #views: View[] = [];
  readonly #redo: Change[] = [];
  #isCheckpointed = false;
  #lines = 0;
  /** A line that is not intact: an error unless it is the last one. */
  #broken: number | null = null;

  constructor(node: string, now: Moment) {
    this.#node = node;
    this.#now = now;
  }

  take(text: string): void {
    this.#lines++;
    if (this.#broken !== null) throw new CorruptHistory(`line ${this.#broken} is damaged`);
    const line = readLine(text);
    if (line === null) this.#broken = this.#lines;
    else if (this.#header === null) this.#begin(line);
    else this.#add(line);
  }

  finish(): Saved {
    if (this.#header === null) throw new CorruptHistory("it has no header");
    if (!this.#isCheckpointed) throw new CorruptHistory("it is incomplete");
    const past = new Past(snapshotOf(this.#views));
    for (const change of this.#redo) past.undo(change);
    const { beginsAt, dropped } = this.#header;
    const stored = [...this.#stored.values()];
    return { stored, beginsAt, dropped, state: past.snapshot(), torn: this.#broken !== null };
  }

  #begin(line: SavedLine): void {
    if (line.type !== "header") throw new CorruptHistory("it has no header");
    if (line.version !== formatVersion)
      throw new CorruptHistory(
        `it is of format ${line.version}, and this version reads format ${formatVersion}`,
      );
    if (line.node !== this.#node) throw new CorruptHistory(`it is of node ${JSON.stringify(line.node)}`);
    this.#header = line;
  }

  #add(line: SavedLine): void {
    switch (line.type) {
      case "header":
        throw new CorruptHistory(`line ${this.#lines} is a second header`);
      case "change":
        this.#addChange(line);
        break;
      case "view":
        this.#views.push(line.view);
        break;
      case "checkpoint":
        if (line.views !== this.#views.length) throw new CorruptHistory("its checkpoint is incomplete");
        this.#isCheckpointed = true;
        break;
      case "written":
        this.#addWritten(line.seq, line.family, line.written);
        break;
    }
  }

  #addChange({ seq, at, written, recorded, redo }: Extract<SavedLine, { type: "change" }>): void {
    if (redo === undefined && this.#isCheckpointed)
      throw new CorruptHistory(`line ${this.#lines} lacks what it changed`);
    if (redo !== undefined) this.#redo.push(redo);
    const steadyAt = this.#now.steadyAt - Math.max(0, this.#now.at - at);
    this.#stored.set(seq, { seq, at, steadyAt, written, text: asciiText(recorded) });
  }

  #addWritten(seq: number, family: Family, written: Written): void {
    const stored = this.#stored.get(seq);
    if (stored !== undefined) stored.written[family] = written;
  }
}
