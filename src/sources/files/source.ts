// Manifest files as a Source: read at the start, and watched for changes.
import { stat } from "node:fs/promises";
import { Cluster } from "../../manifests/cluster.ts";
import { type Kind, kinds } from "../../manifests/objects.ts";
import { Notifier } from "../../model/notifier.ts";
import type { Problem } from "../../model/problem.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { NodeLog } from "../node-log.ts";
import { initialStatus, type ResourceStatus, type Source, SourceError } from "../source.ts";
import type { Clock } from "../world.ts";
import { type Change, Collection } from "./collection.ts";
import { asyncDisk, type Disk, syncDisk } from "./disk.ts";
import { FileFollower } from "./follower.ts";
import { missingAmong } from "./scan.ts";
import type { FoundObject } from "./unfold.ts";

export type FilesSourceParts = {
  /** Files or folders. */
  readonly paths: readonly string[];
  readonly nodeName: string;
  readonly clock: Clock;
  readonly disk?: Disk;
};

/** Works until `life` aborts. Rejects when a path does not exist. */
export async function filesSource(
  { paths, nodeName, clock, disk = asyncDisk }: FilesSourceParts,
  life: AbortSignal,
): Promise<Source> {
  await checkThere(paths);
  const cluster = new Cluster(nodeName);
  const node = openOwnNode(nodeName);
  const changes = new Notifier();
  const follower = new FileFollower(paths, clock, disk);
  let status: ResourceStatus = initialStatus;
  let bug: unknown;
  let unreported = true;
  follow().catch((error: unknown) => {
    bug = error;
    changes.notify();
  });
  life.addEventListener("abort", () => changes.notify(), { once: true });

  return {
    async *snapshots(signal) {
      for (let first = true; ; ) {
        if (status.synced && (first || unreported || cluster.pending)) {
          first = false;
          unreported = false;
          yield take(cluster, [...follower.problems, ...node.problems()]);
        }
        await changes.notified(signal).catch(() => {});
        if (bug !== undefined) throw bug;
        if (signal.aborted || life.aborted) return;
      }
    },
    nodeEvents: (signal) => node.log.events(signal),
    events: () => cluster.events,
    status: () => ({
      synced: status.synced,
      resources: Object.fromEntries(kinds.map((kind) => [kind, status] as const)) as Record<
        Kind,
        ResourceStatus
      >,
    }),
  };

  async function follow(): Promise<void> {
    for await (const change of follower.changes(life)) {
      // Keep its last state: an edited file is no reason to stop or to lose the node's zone and addresses.
      apply({ ...change, gone: change.gone.filter((found) => !node.is(found)) }, cluster, clock.wall());
      node.see(change, status.synced);
      status = statusAfter(status, [...follower.problems, ...node.problems()], clock.wall());
      unreported = true;
      changes.notify();
    }
  }
}

/** The Node of this daemon in the files. */
function openOwnNode(nodeName: string) {
  const log = new NodeLog();
  /** Non-empty while it is no longer in any of the files. */
  let problems: readonly Problem[] = [];
  const is = ({ reading: { kind, who } }: FoundObject) => kind === "Node" && who.name === nodeName;
  return {
    log,
    is,
    problems: () => problems,
    /** Unlike in the API, a Node missing from the files was not deleted: the files are being edited. */
    see({ set, gone }: Change, synced: boolean): void {
      const present = set.find(is)?.reading;
      if (present?.kind === "Node") {
        problems = [];
        if (present.parsed.value !== null) log.see(present.parsed.value, "");
      } else if (gone.some(is)) problems = [nodeGone(nodeName)];
      else if (!synced) log.see(null, "");
    },
  };
}

function nodeGone(nodeName: string): Problem {
  const message = "is in none of the files any more; its last state is kept";
  return { kind: "unreadable", object: `Node ${nodeName}`, field: "", message };
}

/** Snapshots of several sets of files, each as a change of the one before. Rejects when a path does not exist. */
export async function* filesInTurn(
  sets: readonly (readonly string[])[],
  nodeName: string,
  clock: Clock,
  signal: AbortSignal,
  disk: Disk = syncDisk,
): AsyncGenerator<Snapshot> {
  const cluster = new Cluster(nodeName);
  const collection = new Collection();
  for (const paths of sets) {
    await checkThere(paths);
    const follower = new FileFollower(paths, clock, disk, collection);
    for await (const change of follower.changes(signal)) {
      apply(change, cluster, clock.wall());
      yield take(cluster, follower.problems);
      break;
    }
  }
}

async function checkThere(paths: readonly string[]): Promise<void> {
  const missing = await missingAmong(paths);
  const [first] = missing;
  if (first === undefined) return;
  const isHidden = await stat(first).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === "EACCES",
  );
  const why = isHidden ? "permission denied" : "there is no such file or directory";
  throw new SourceError(`Cannot read ${missing.join(", ")}: ${why}`);
}

function apply({ set, gone }: Change, cluster: Cluster, at: number): void {
  const received = { version: "", at };
  for (const { reading } of set) cluster.put(reading, received);
  for (const { reading } of gone)
    cluster.remove(reading.kind, reading.who.namespace, reading.who.name, received);
}

function take(cluster: Cluster, problems: readonly Problem[]): Snapshot {
  const snapshot = cluster.take();
  return { ...snapshot, problems: [...problems, ...snapshot.problems] };
}

function statusAfter(before: ResourceStatus, problems: readonly Problem[], now: number): ResourceStatus {
  const [worst] = problems.filter((problem) => problem.kind === "unreadable");
  const failed = worst
    ? { lastError: { message: `${worst.object} ${worst.message}`, at: now }, failures: before.failures + 1 }
    : {};
  return { ...before, synced: true, lastEventAt: now, watchSince: before.watchSince ?? now, ...failed };
}
