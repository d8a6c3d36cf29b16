// The first Snapshot of a Source: for commands that read the cluster once.
import type { Clock } from "../model/clock.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type Disk, syncDisk } from "./files/disk.ts";
import { filesInTurn } from "./files/source.ts";
import { type FilesSpec, openSource, type SourceSpec } from "./index.ts";
import { SourceError, type SourceStatus } from "./source.ts";
import { realWorld } from "./world.ts";

/** A slow cluster has responded by then. */
const timeoutMs = 20_000;
/** Time limit for a cluster that refuses our requests. */
const insistenceMs = 4_000;

/** Throws SourceError when the cluster does not respond. */
export async function firstSnapshot(
  spec: SourceSpec,
  nodeName: string,
  clock: Clock,
  signal: AbortSignal,
  disk: Disk = syncDisk,
): Promise<Snapshot> {
  const life = new AbortController();
  signal.addEventListener("abort", () => life.abort(), { once: true });
  const deadlines: (() => void)[] = [];
  try {
    const source = await openSource(spec, nodeName, { ...realWorld(clock), disk }, life.signal);
    deadlines.push(
      clock.after(timeoutMs, () => life.abort()),
      clock.after(insistenceMs, () => reasonIn(source.status()) !== null && life.abort()),
    );
    for await (const snapshot of source.snapshots(life.signal)) return snapshot;
    throw new SourceError(`Cannot read the cluster: ${reasonIn(source.status()) ?? "no response"}`);
  } finally {
    life.abort();
    for (const cancel of deadlines) cancel();
  }
}

/** The same of two clusters in files, the second as a change of the first. */
export async function firstSnapshots(
  [before, after]: readonly [FilesSpec, FilesSpec],
  nodeName: string,
  clock: Clock,
  signal: AbortSignal,
  disk: Disk,
): Promise<readonly [Snapshot, Snapshot]> {
  const snapshots = filesInTurn([before.paths, after.paths], nodeName, clock, signal, disk);
  const [first, second] = [await snapshots.next(), await snapshots.next()];
  if (first.done || second.done) throw new SourceError("Cannot read the files: interrupted");
  await snapshots.return(undefined);
  return [first.value, second.value];
}

function reasonIn({ resources }: SourceStatus): string | null {
  const errors = Object.values(resources).flatMap(({ lastError }) => lastError?.message ?? []);
  return errors[0] ?? null;
}
