// Watches files for changes: new, replaced, switched by a symbolic link, broken, removed.
import { dirname } from "node:path";
import { mapConcurrently } from "../../model/map-concurrently.ts";
import { Notifier } from "../../model/notifier.ts";
import type { Problem } from "../../model/problem.ts";
import { type Clock, sleep } from "../world.ts";
import { type Change, Collection } from "./collection.ts";
import type { Disk } from "./disk.ts";
import { FolderWatch } from "./folder-watch.ts";
import { parseFile } from "./parse.ts";
import { type FoundFile, isUnder, type Scan, scan } from "./scan.ts";

/** A file is read when it has not changed for this long, so that a half-written one is not read. */
const settleMs = 100;
/** Or immediately when it was not written for this long, by our clock and that of its file system. */
const longRestMs = 2_000;
const pollMs = 500;
/** A file that is gone counts as removed after this long: `rm` and `cp`, or `mv` and `cp`, replace it. */
const removedMs = 500;

/** Polls the files and returns the changes of their contents. */
export class FileFollower {
  readonly #paths: readonly string[];
  readonly #clock: Clock;
  readonly #disk: Disk;
  readonly #collection: Collection;
  /** The stamp of each file as it was last read. */
  readonly #read = new Map<string, string>();
  /** The stamps at the last scan: only files that have not changed since are read. */
  #seen = new Map<string, string>();
  /** When each path was first found gone, on the steady clock. */
  #missingSince: ReadonlyMap<string, number> = new Map();
  /** The named paths that are gone. */
  #lost: readonly string[] = [];

  /** Objects of other files in the collection are removed with the first change. */
  constructor(paths: readonly string[], clock: Clock, disk: Disk, collection = new Collection()) {
    this.#paths = paths;
    this.#clock = clock;
    this.#disk = disk;
    this.#collection = collection;
  }

  get problems(): readonly Problem[] {
    return this.#collection.problems;
  }

  /** The first change contains all objects. */
  async *changes(signal: AbortSignal): AsyncGenerator<Change> {
    const notifier = new Notifier();
    const watch = new FolderWatch(() => notifier.notify());
    let reported = false;
    try {
      while (!signal.aborted) {
        const found = await scan(this.#paths, this.#disk);
        watch.follow([...found.folders, ...this.#paths.map((path) => ({ path: dirname(path), stamp: "" }))]);
        const { changed, settled } = await this.#verification(found);
        if (reported ? changed : settled) {
          reported = true;
          yield this.#collection.settle(
            found.files.map(({ path }) => path),
            missingProblems(this.#lost),
          );
        }
        await this.#pause(notifier, settled ? pollMs : settleMs, settled, signal);
      }
    } finally {
      watch.close();
    }
  }

  /** Reads files that have changed and are stable again, and drops removed ones. */
  async #verification({ files, missing }: Scan): Promise<{ changed: boolean; settled: boolean }> {
    const fresh = files.filter(({ path, stamp }) => this.#read.get(path) !== stamp);
    const resting = fresh.filter((file) => this.#rests(file));
    const parsed = await mapConcurrently(resting, (file) => parseFile(file, this.#disk));
    for (const [i, { path, stamp }] of resting.entries()) {
      this.#collection.load(path, parsed[i]!);
      this.#read.set(path, stamp);
    }
    this.#seen = new Map(files.map(({ path, stamp }) => [path, stamp]));
    const gone = this.#collection.paths().filter((path) => !this.#seen.has(path) && !isUnder(path, missing));
    const removed = this.#removedAmong([...gone, ...missing]);
    for (const path of gone.filter((each) => removed.has(each))) this.#forget(path);
    const lost = missing.filter((path) => removed.has(path));
    const changed =
      resting.length > 0 || gone.some((path) => removed.has(path)) || lost.join() !== this.#lost.join();
    this.#lost = lost;
    return { changed, settled: resting.length === fresh.length && removed.size === this.#missingSince.size };
  }

  #rests({ path, stamp, changedAt }: FoundFile): boolean {
    return this.#seen.get(path) === stamp || this.#clock.wall() - changedAt >= longRestMs;
  }

  #forget(path: string): void {
    this.#collection.forget(path);
    this.#read.delete(path);
  }

  /** Files that have been gone for too long to be in the middle of a replacement. */
  #removedAmong(gone: readonly string[]): ReadonlySet<string> {
    const now = this.#clock.steady();
    // Files that another follower read into the collection are not waited for.
    const sinceOf = (path: string) =>
      this.#missingSince.get(path) ??
      (this.#read.has(path) || this.#paths.includes(path) ? now : Number.NEGATIVE_INFINITY);
    this.#missingSince = new Map(gone.map((path) => [path, sinceOf(path)]));
    return new Set(gone.filter((path) => now - sinceOf(path) >= removedMs));
  }

  async #pause(notifier: Notifier, ms: number, wakeable: boolean, signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const abort = () => stop.abort();
    signal.addEventListener("abort", abort, { once: true });
    const waits = [
      sleep(this.#clock, ms, stop.signal),
      ...(wakeable ? [notifier.notified(stop.signal)] : []),
    ];
    await Promise.race(waits).catch(() => {});
    stop.abort();
    await Promise.allSettled(waits);
    signal.removeEventListener("abort", abort);
  }
}

function missingProblems(missing: readonly string[]): Problem[] {
  return missing.map((path) => ({
    kind: "unreadable",
    object: path,
    field: "",
    message: "is gone; its last good state is kept",
  }));
}
