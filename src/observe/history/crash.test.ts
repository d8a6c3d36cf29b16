// A crash of the machine keeps only what was synced to the disk: a change is there a second after it arrived.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { endpoint, node, service, slice } from "../../../test/objects.ts";
import { logLines } from "../../../test/support/log-lines.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { HistoryLog } from "../../history/log.ts";
import { Cluster } from "../../manifests/cluster.ts";
import { HistoryDirectory } from "./directory.ts";
import { HistoryRecorder } from "./recorder.ts";
import type { OpenFile } from "./saved-file.ts";

/** What a crash leaves: of each file what was synced last, under the names that the folder had when it was synced last. */
const disk = { contents: new Map<number, Buffer>(), names: new Map<string, number>() };

const openWatched: OpenFile = async (path, ...rest) => watched(String(path), await open(path, ...rest));

function watched(path: string, handle: FileHandle): FileHandle {
  const [sync, datasync] = [handle.sync.bind(handle), handle.datasync.bind(handle)];
  handle.datasync = async () => {
    await datasync();
    disk.contents.set((await handle.stat()).ino, readFileSync(`/proc/self/fd/${handle.fd}`));
  };
  handle.sync = async () => {
    await sync();
    disk.names.clear();
    for (const name of readdirSync(path)) disk.names.set(name, statSync(join(path, name)).ino);
  };
  return handle;
}

let [directory, afterCrash] = ["", ""];
beforeEach(() => {
  disk.contents.clear();
  disk.names.clear();
  [directory, afterCrash] = [1, 2].map(() => mkdtempSync(join(tmpdir(), "turnout-crash-"))) as [
    string,
    string,
  ];
});
afterEach(() => {
  for (const each of [directory, afterCrash]) rmSync(each, { recursive: true });
});

/** The newest change that a daemon reads after a crash at this moment. */
function survives(): number {
  for (const [name, ino] of disk.names)
    writeFileSync(join(afterCrash, name), disk.contents.get(ino) ?? Buffer.alloc(0));
  const text = readFileSync(join(afterCrash, "history.log"), "utf8");
  expect(text.endsWith("\n")).toBe(true);
  return Math.max(0, ...[...text.matchAll(/"type":"change","seq":(\d+),/g)].map(([, seq]) => Number(seq)));
}

it.each([
  ["appended to", 8_000_000, false],
  ["written again now and then", 3_000, true],
])("a file that is %s", async (_, bytes, isReplaced) => {
  const clock = manualClock();
  const history = new HistoryLog({ bytes, ageMs: 86_400_000 });
  const { signal } = new AbortController();
  const { log } = logLines(clock);
  const store = new HistoryDirectory({ directory, node: "node-a", clock, log, signal, open: openWatched });
  const recorder = new HistoryRecorder({ log: history, node: "node-a", families: ["ipv4"], clock, store });
  const cluster = new Cluster("node-a");
  cluster.upsert("Service", service());
  cluster.upsert("Node", node("node-a"));
  recorder.arrived(cluster.take());
  await recorder.idle();
  expect(survives()).toBe(0);
  const files = new Set<number>();
  for (let count = 1; count <= 12; count++) {
    cluster.upsert("EndpointSlice", slice([endpoint(`10.0.1.${count}`)]), { version: String(count), at: 1 });
    recorder.arrived(cluster.take());
    // No Sync ends: the change is recorded nevertheless. The second is over after this, and the clock does not move again.
    clock.advance(250);
    await expect.poll(() => history.lastSeq).toBe(count);
    await recorder.idle();
    clock.advance(750);
    await expect.poll(survives).toBe(count);
    files.add(disk.names.get("history.log")!);
  }
  expect(files.size > 1).toBe(isReplaced);
  await recorder.close();
});
