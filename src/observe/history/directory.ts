// Saves the history in a directory: one file with a checkpoint, to which changes are appended, and which is written again when it grows.
import { mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Change } from "../../history/change.ts";
import type { Written } from "../../history/entry.ts";
import type { HistoryLog, Moment, Stored } from "../../history/log.ts";
import { restartRecord } from "../../history/record.ts";
import type { Family } from "../../model/address.ts";
import type { Clock } from "../../model/clock.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { timeText } from "../clock.ts";
import type { Log } from "../log/log.ts";
import { CorruptHistory, loadHistory, type Saved } from "./load.ts";
import { lockDirectory } from "./lock.ts";
import type { HistoryStore } from "./recorder.ts";
import { linesOf, type OpenFile, type SavedFile, writeSavedFile } from "./saved-file.ts";
import { changeLine, lineOf } from "./saved-lines.ts";
import { finishedInTurns } from "./turns.ts";

export const fileName = "history.log";

/** Changes are on disk after this time at the latest; the rest of a second is for the disk. */
const flushMs = 400;
/** Until the next try after a failure. */
const retryMs = 60_000;
/** Times that changes which arrived meanwhile are appended to a new file before it replaces the old one. */
const mostPasses = 3;
/** How long to wait for another daemon to end. */
const lockMs = 10_000;
const lockPollMs = 200;

export type DirectoryOptions = {
  readonly directory: string;
  readonly node: string;
  readonly clock: Clock;
  readonly log: Log;
  /** On abort, another daemon is no longer waited for. */
  readonly signal: AbortSignal;
  /** As of `node:fs/promises`. */
  readonly open?: OpenFile;
};

export class HistoryDirectory implements HistoryStore {
  readonly directory: string;
  readonly #options: DirectoryOptions;
  readonly #path: string;
  #unsaved: string | null = "it is being opened";
  #unlock: (() => void) | null = null;
  #file: SavedFile | null = null;
  /** Not handed to the file yet. */
  #lines: string[] = [];
  /** During a rewrite: lines that the new file lacks. */
  #missed: string[] | null = null;
  #timer: (() => void) | null = null;
  #rewriting: Promise<void> | null = null;
  #isClosed = false;
  /** Since the last failure nothing was saved. */
  #hasFailed = false;
  #history: HistoryLog | null = null;

  constructor(options: DirectoryOptions) {
    this.#options = options;
    this.directory = options.directory;
    this.#path = join(options.directory, fileName);
  }

  readonly unsaved = (): string | null => this.#unsaved;

  readonly begin = async (history: HistoryLog, first: Snapshot, now: Moment): Promise<void> => {
    this.#history = history;
    const saved = await this.#open(now);
    if (saved === "unreadable")
      history.begin(first, now.at, {
        stored: [],
        beginsAt: null,
        dropped: { reason: "unreadable", entries: 0 },
      });
    else if (saved === null) history.begin(first, now.at);
    else await continueFrom(saved, history, first, now);
    if (this.#unlock !== null && !this.#hasFailed) await this.#rewrite();
  };

  readonly changed = (stored: Stored, redo: Change): void => this.#append(changeLine(stored, redo));

  readonly written = (seq: number, family: Family, written: Written): void =>
    this.#append(lineOf({ type: "written", seq, family, written }));

  readonly close = async (): Promise<void> => {
    this.#isClosed = true;
    this.#timer?.();
    await this.#rewriting;
    await this.#flush();
    await this.#file?.close();
    this.#unlock?.();
  };

  /** null: there is none. A file that cannot be used is set aside. */
  async #open(now: Moment): Promise<Saved | "unreadable" | null> {
    try {
      await mkdir(this.directory, { recursive: true, mode: 0o700 });
      this.#unlock = await this.#locked();
      if (this.#unlock === null) {
        this.#giveUp(new Error("another process uses the directory"));
        return null;
      }
      const saved = await loadHistory(this.#path, this.#options.node, now);
      this.#options.log.info("Read the saved history", {
        file: this.#path,
        changes: saved.stored.length,
        since: timeText(saved.beginsAt),
        ...(saved.torn ? { lost: "the last line, which was cut off" } : {}),
      });
      return saved;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      if (error instanceof CorruptHistory) await this.#setAside(error, now);
      else this.#giveUp(error as Error);
      return "unreadable";
    }
  }

  async #locked(): Promise<(() => void) | null> {
    const { clock, signal } = this.#options;
    const until = clock.steady() + lockMs;
    for (;;) {
      const unlock = await lockDirectory(this.directory);
      if (unlock !== null || signal.aborted || clock.steady() >= until) return unlock;
      await new Promise<void>((resolve) => clock.after(lockPollMs, resolve));
    }
  }

  async #setAside(error: CorruptHistory, { at }: Moment): Promise<void> {
    const aside = `${this.#path}.${timeText(at).replaceAll(/[-:]/g, "")}.bad`;
    const kept = await rename(this.#path, aside).then(
      () => aside,
      (reason: Error) => reason,
    );
    if (kept instanceof Error) return this.#giveUp(kept);
    this.#options.log.error(error, "Cannot read the saved history; beginning an empty one", {
      file: this.#path,
      keptAs: aside,
    });
  }

  #append(line: string): void {
    if (this.#unlock === null) return;
    this.#missed?.push(line);
    if (this.#file === null) return;
    this.#lines.push(line);
    this.#flushSoon();
  }

  async #flush(): Promise<void> {
    this.#timer?.();
    this.#timer = null;
    const file = this.#file;
    const lines = this.#lines;
    if (file === null || lines.length === 0) return;
    this.#lines = [];
    try {
      await file.append(lines.join(""));
    } catch (error) {
      if (file === this.#file) this.#fail(error as Error);
      return;
    }
    if (file.isDue(this.#history!.limits.bytes) && !this.#isClosed) void this.#rewrite();
  }

  /** One at a time; changes are appended to the old file until the new one replaces it. */
  #rewrite(): Promise<void> {
    this.#rewriting ??= this.#writeNew()
      .catch((error: unknown) => this.#fail(error as Error))
      .finally(() => {
        this.#rewriting = null;
        this.#missed = null;
      });
    return this.#rewriting;
  }

  async #writeNew(): Promise<void> {
    const missed: string[] = [];
    this.#missed = missed;
    const temporary = `${this.#path}.new`;
    const { node, open: openFile = open } = this.#options;
    const file = await writeSavedFile(temporary, linesOf(this.#history!, node), openFile);
    try {
      // What arrives while the disk is written to: less each time, unless the disk is slow and changes never pause.
      for (let pass = 0; pass < mostPasses && missed.length > 0; pass++)
        await file.append(missed.splice(0).join(""));
      await rename(temporary, this.#path);
      await syncFolder(this.directory, openFile);
    } catch (error) {
      await file.close();
      await rm(temporary, { force: true });
      throw error;
    }
    const old = this.#file;
    // From here on nothing else runs: what arrived since goes to the new file, immediately, because the old one may have had it for a while.
    this.#file = file;
    this.#lines = [...missed];
    void this.#flush();
    if (this.#hasFailed) this.#options.log.info("The history is saved again", { file: this.#path });
    this.#hasFailed = false;
    this.#unsaved = null;
    await old?.close();
  }

  #flushSoon(): void {
    this.#timer ??= this.#options.clock.after(flushMs, () => void this.#flush());
  }

  /** A file that cannot be read is not replaced either. */
  #giveUp(error: Error): void {
    this.#unlock?.();
    this.#unlock = null;
    this.#fail(error);
  }

  /** The history continues in memory. */
  #fail(error: Error): void {
    const isNew = !this.#hasFailed;
    this.#hasFailed = true;
    this.#unsaved = error.message;
    const file = this.#file;
    this.#file = null;
    this.#lines = [];
    void file?.close().catch(() => {});
    if (isNew)
      this.#options.log.error(error, "Cannot save the history; it is kept in memory only", {
        directory: this.directory,
      });
    if (this.#unlock !== null && !this.#isClosed)
      this.#options.clock.after(retryMs, () => void (this.#isClosed || this.#rewrite()));
  }
}

/** What was saved, and what changed between its last state and the first one of this process. */
async function continueFrom(saved: Saved, history: HistoryLog, first: Snapshot, now: Moment): Promise<void> {
  const restart = await finishedInTurns(restartRecord(saved.state, first));
  if (restart === null) return history.begin(first, now.at, saved);
  history.begin(saved.state, now.at, saved);
  const { undo } = restart;
  history.append({ origin: "restart", clockStepMs: 0, causes: [], moreCauses: 0, undo }, now, first);
}

async function syncFolder(path: string, openFile: OpenFile): Promise<void> {
  const folder = await openFile(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
