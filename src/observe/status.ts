// What a running daemon tells of itself, kept up to date by the sync loop and served on a socket for root only.
import { chmodSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { dirname } from "node:path";
import type { View } from "../explain/view.ts";
import type { Family } from "../model/address.ts";
import type { Problem } from "../model/problem.ts";
import type { OpenRelays } from "../modes/userspace/relays.ts";
import type { SourceStatus } from "../sources/source.ts";
import type { LoopObserver } from "../sync/loop.ts";
import type { SyncRecord } from "../sync/record.ts";

export const defaultStatusSocket = "/run/turnout/status.sock";

/** Who answers: does not change while the daemon runs. */
export type StatusFacts = {
  readonly pid: number;
  readonly version: string;
  readonly node: string;
  readonly mode: string;
  readonly families: readonly Family[];
  /** As `--source` would name it. */
  readonly source: string;
  /** Whether the kernel keeps others from changing our table. */
  readonly ownership: "plain" | "owned";
  /** Milliseconds since 1970. */
  readonly startedAt: number;
};

export type Drift = {
  readonly at: number;
  readonly family: Family;
  readonly differences: number;
  readonly what: string;
};

export type Status = StatusFacts & {
  /** The configuration in force, as `--write-config-to` would write it. */
  readonly configuration: string;
  /** The latest, newest first. */
  readonly syncs: readonly SyncRecord[];
  /** When each family last was as wanted; null: not yet. */
  readonly lastSuccess: Readonly<Partial<Record<Family, number>>>;
  readonly problems: readonly Problem[];
  /** What was found changed by somebody else and repaired, newest first. */
  readonly drift: readonly Drift[];
  readonly watches: SourceStatus["resources"];
};

/** What the socket answers, by path. Relays are those of each family that has any. */
export type Answers = {
  readonly "/": Status;
  readonly "/relays": Readonly<Partial<Record<Family, OpenRelays>>>;
  /** What matters to `?from=…&to=…`, in the words of `explain`; null: no such question, or nothing is known yet. */
  readonly "/view": View | null;
};

export type StatusKeeper = Pick<LoopObserver, "readBack"> & {
  readonly synced: (record: SyncRecord) => void;
  readonly status: () => Status;
};

const remembered = 20;

/** What is asked anew for each answer. */
export type StatusSources = {
  readonly source: () => SourceStatus;
  readonly configuration: () => string;
  /** What is wrong with the objects known now. */
  readonly problems: () => readonly Problem[];
  readonly now: () => number;
};

export function keepStatus(facts: StatusFacts, sources: StatusSources): StatusKeeper {
  const { source, configuration, problems, now } = sources;
  let syncs: readonly SyncRecord[] = [];
  let drift: readonly Drift[] = [];
  const refused = new Map<Family, readonly Problem[]>();
  const lastSuccess: Partial<Record<Family, number>> = {};
  return {
    synced(record) {
      syncs = [record, ...syncs].slice(0, remembered);
      if (record.outcome.kind !== "ok") return;
      refused.set(record.family, record.outcome.refused);
      lastSuccess[record.family] = record.finishedAt;
    },
    readBack(family, differences, what) {
      if (differences > 0) drift = [{ at: now(), family, differences, what }, ...drift].slice(0, remembered);
    },
    status: () => ({
      ...facts,
      configuration: configuration(),
      syncs,
      lastSuccess,
      problems: [...problems(), ...[...refused.values()].flat()],
      drift,
      watches: source().resources,
    }),
  };
}

/** Serves until the returned function is called. The folder and the socket are for root only. */
export async function serveStatus(
  path: string,
  answers: { readonly [Path in keyof Answers]: (query: URLSearchParams) => Answers[Path] },
): Promise<() => void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  if (existsSync(path) && (await isAnswered(path))) throw new Error(`${path} is served by another process`);
  rmSync(path, { force: true });
  const server = createServer(({ url = "/" }, response) => {
    const { pathname, searchParams } = new URL(url, "http://daemon");
    const answer = Object.hasOwn(answers, pathname) ? answers[pathname as keyof Answers] : answers["/"];
    response.writeHead(200, { "content-type": "application/json" });
    response.end(`${JSON.stringify(answer(searchParams))}\n`);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  chmodSync(path, 0o600);
  server.unref();
  return () => {
    server.closeAllConnections();
    server.close();
    rmSync(path, { force: true });
  };
}

/** A socket that a dead process left behind refuses. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path, () => resolve(true));
    probe.once("error", () => resolve(false));
    probe.once("connect", () => probe.destroy());
  });
}
