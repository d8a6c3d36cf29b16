// Thousands of generated changes with small limits: the history stays within them, in memory and on disk, and states what it dropped.
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import { endpoint, node, service, slice } from "../../../test/objects.ts";
import { logLines } from "../../../test/support/log-lines.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { HistoryLog } from "../../history/log.ts";
import { Cluster } from "../../manifests/cluster.ts";
import { fileName, HistoryDirectory } from "./directory.ts";
import { HistoryRecorder } from "./recorder.ts";

const directory = mkdtempSync(join(tmpdir(), "turnout-soak-"));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const limits = { bytes: 100_000, ageMs: 600_000 };
const changes = 2000;
/** In a file besides changes, of which the limit is: what their lines begin with, the state of a Service and its Node, a last change. */
const overhead = 20_000;

it("stays within 100 kB and ten minutes over 2,000 changes of very different size", async () => {
  const clock = manualClock();
  const { log } = logLines(clock);
  const history = new HistoryLog(limits);
  const signal = new AbortController().signal;
  const disk = watchedDisk();
  const store = new HistoryDirectory({ directory, node: "node-a", clock, log, signal, open: disk.open });
  const recorder = new HistoryRecorder({ log: history, node: "node-a", families: ["ipv4"], clock, store });
  const cluster = new Cluster("node-a");
  cluster.upsert("Service", service());
  cluster.upsert("Node", node("node-a"));
  const most = { bytes: 0, age: 0, file: 0 };
  let random = 1;
  for (let i = 0; i < changes; i++) {
    random = (random * 1_103_515_245 + 12_345) % 2_147_483_648;
    const endpoints = Array.from({ length: random % 40 === 0 ? 40 : (random >> 8) % 8 }, (_, n) =>
      endpoint(`10.${i % 250}.${n >> 6}.${(n % 64) + 1}`),
    );
    cluster.upsert("EndpointSlice", slice(endpoints), { version: String(i), at: 1 });
    // Bursts, and now and then an hour without a change.
    clock.advance(i % 700 === 699 ? 3_600_000 : (random >> 4) % 3000);
    recorder.arrived(cluster.take());
    await recorder.idle();
    recorder.head();
    most.bytes = Math.max(most.bytes, history.bytes);
    most.age = Math.max(most.age, clock.wall() - history.beginsAt!);
    clock.advance(500);
    await disk.idle();
    most.file = Math.max(most.file, sizeOf());
  }
  expect(most.bytes).toBeLessThanOrEqual(limits.bytes);
  expect(most.bytes).toBeGreaterThan(limits.bytes / 2);
  expect(history.stored.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThanOrEqual(history.bytes);
  expect(history.size).toBeLessThan(changes / 4);
  expect(history.stored.every(({ steadyAt }) => clock.steady() - steadyAt <= limits.ageMs)).toBe(true);
  expect(recorder.head().dropped).toMatchObject({ reason: expect.stringMatching(/^(size|age)$/) });
  expect(recorder.head().dropped!.entries + history.size).toBeGreaterThan(changes / 2);
  expect(isSaved(history.lastSeq)).toBe(true);
  await recorder.close();
  expect(Math.max(most.file, sizeOf())).toBeLessThanOrEqual(2 * limits.bytes + overhead);
}, 60_000);

/**
 * `idle` resolves when nothing is being written: the clock of the test is faster than the disk, and the old file grows as long as a
 * new one is being written. Nothing is synced: what is on the disk after a crash is the matter of another test, and takes seconds.
 */
function watchedDisk() {
  let busy = 0;
  const during = async <T>(work: Promise<T>): Promise<T> => {
    busy++;
    return work.finally(() => busy--);
  };
  const watched: typeof open = async (...options) => {
    const handle = await during(open(...options));
    const [append, close] = [handle.appendFile.bind(handle), handle.close.bind(handle)];
    return Object.assign(handle, {
      appendFile: (...text: Parameters<typeof append>) => during(append(...text)),
      close: () => during(close()),
      sync: async () => {},
      datasync: async () => {},
    });
  };
  const idle = async () => {
    do await nextTurn();
    while (busy > 0 || existsSync(join(directory, `${fileName}.new`)));
  };
  return { open: watched, idle };
}

function isSaved(seq: number): boolean {
  return readFileSync(join(directory, fileName), "utf8").includes(`"type":"change","seq":${seq},`);
}

function sizeOf(): number {
  return statSync(join(directory, fileName), { throwIfNoEntry: false })?.size ?? 0;
}
