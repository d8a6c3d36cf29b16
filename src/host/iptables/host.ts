// The tables of one family on this machine: read with `iptables-save`, changed with one `iptables-restore`.
import type { Family } from "../../model/address.ts";
import { countOperations } from "../../plan/iptables/diff.ts";
import { parseSave } from "../../plan/iptables/parse.ts";
import { inputLines, patchTexts } from "../../plan/iptables/print.ts";
import { stage } from "../../plan/iptables/stage.ts";
import type { HostTables, IptablesPatch } from "../../plan/iptables/types.ts";
import { HostError } from "../error.ts";
import { type BackEnd, backEndOf } from "./back-end.ts";
import { type Finished, programs, run, type Start, waitForLock } from "./command.ts";
import { restoreFailure } from "./refusal.ts";

/** What one Patch cost. */
export type Written = { readonly operations: number; readonly bytes: number };

export type IptablesHost = {
  readonly family: Family;
  readonly backEnd: BackEnd;
  /** Every table as it is. */
  read(signal?: AbortSignal): Promise<HostTables>;
  /** Carries out a Patch, table by table; each takes effect as a whole or not at all. */
  apply(patch: IptablesPatch, signal?: AbortSignal): Promise<Written>;
  /** Whether a process is one of our restores: events of nf_tables contain the process that made the change. */
  isOwn(pid: number): boolean;
};

/** Determines the back end of the program; throws when it cannot be used. */
export async function openIptablesHost(
  family: Family,
  start: Start,
  signal?: AbortSignal,
): Promise<IptablesHost> {
  const { edit } = programs[family];
  const backEnd = await backEndOf(start, edit, signal);
  if (backEnd === null) throw new HostError("unavailable", `Cannot use ${edit}: it does not run`);
  return hostOf(family, start, backEnd);
}

function hostOf(family: Family, start: Start, backEnd: BackEnd): IptablesHost {
  const { save, restore } = programs[family];
  return {
    family,
    backEnd,
    isOwn: (pid) => writers.has(pid),
    async read(signal) {
      const listing = await run(start, save, [], "", signal);
      mustBeListing(save, listing);
      return parseSave(listing.stdout, family);
    },
    async apply(patch, signal) {
      const input = backEnd === "nf_tables" ? stage(patch) : patch;
      if (input.steps.length === 0) return { operations: 0, bytes: 0 };
      const texts = new Measured(patchTexts(input));
      // No signal: a restore must not be interrupted, and takes milliseconds or waits at most five seconds for a lock.
      signal?.throwIfAborted();
      const { pid, finished } = start(restore, [...waitForLock, "--noflush", "--counters"], texts);
      writers.add(pid);
      const end = await finished;
      if (end.code !== 0) throw restoreFailure(restore, end, () => inputLines(input));
      return { operations: countOperations(input), bytes: texts.length };
    },
  };
}

/** Texts that count what is taken of them. */
class Measured implements Iterable<string> {
  readonly #texts: Iterable<string>;
  length = 0;

  constructor(texts: Iterable<string>) {
    this.#texts = texts;
  }

  *[Symbol.iterator](): Generator<string> {
    for (const text of this.#texts) {
      this.length += text.length;
      yield text;
    }
  }
}

/** The last few processes: an event may arrive after its process is gone. */
/** Those of both families: a transaction of nf_tables does not contain the tables it changed. */
class RecentWriters {
  readonly #pids: number[] = [];

  add(pid: number | undefined): void {
    if (pid === undefined) return;
    this.#pids.push(pid);
    if (this.#pids.length > 16) this.#pids.shift();
  }

  has(pid: number): boolean {
    return this.#pids.includes(pid);
  }
}

const writers = new RecentWriters();

/** A table that holds what this program cannot show must not be taken for an empty one. */
function mustBeListing(program: string, { code, stdout, stderr }: Finished): void {
  const text = stderr.trim();
  if (code !== 0) {
    throw new HostError("unavailable", `Cannot read tables: ${program} exited with ${code}: ${text}`, {
      text,
    });
  }
  const hidden = /^# Table `(filter|nat|mangle)' is incompatible/m.exec(stdout);
  if (hidden !== null) {
    const what = `table ${hidden[1]} holds rules that only nft understands`;
    throw new HostError("unavailable", `Cannot read tables: ${program} reports that ${what}`);
  }
}
