// Thousands of generated changes with small limits: the history stays within them, in memory and on disk, and states what it dropped.
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
/** The state of one Service with its Node, which a file has besides the changes, and what is written between two readings. */
const checkpoint = 10_000;

it("stays within 100 kB and ten minutes over 2,000 changes of very different size", async () => {
  const clock = manualClock();
  const { log } = logLines(clock);
  const history = new HistoryLog(limits);
  const signal = new AbortController().signal;
  const store = new HistoryDirectory({ directory, node: "node-a", clock, log, signal, open: openUnsynced });
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
    if (i % 5 !== 4) continue;
    // The clock of the test is faster than the disk, and the old file grows as long as the new one is being written.
    const isDone = () => {
      clock.advance(500);
      return isSaved(history.lastSeq) && !existsSync(join(directory, `${fileName}.new`));
    };
    await expect.poll(isDone, { interval: 1, timeout: 10_000 }).toBe(true);
    most.file = Math.max(most.file, sizeOf());
  }
  expect(most.bytes).toBeLessThanOrEqual(limits.bytes);
  expect(most.bytes).toBeGreaterThan(limits.bytes / 2);
  expect(history.stored.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThanOrEqual(history.bytes);
  expect(history.size).toBeLessThan(changes / 4);
  expect(history.stored.every(({ steadyAt }) => clock.steady() - steadyAt <= limits.ageMs)).toBe(true);
  expect(recorder.head().dropped).toMatchObject({ reason: expect.stringMatching(/^(size|age)$/) });
  expect(recorder.head().dropped!.entries + history.size).toBeGreaterThan(changes / 2);
  await recorder.close();
  expect(Math.max(most.file, sizeOf())).toBeLessThanOrEqual(2 * (limits.bytes + checkpoint) + 32_768);
}, 60_000);

/** What is on the disk after a crash is the matter of another test; waiting for it takes seconds on a slow disk. */
const openUnsynced: typeof open = async (...options) =>
  Object.assign(await open(...options), { sync: async () => {}, datasync: async () => {} });

function isSaved(seq: number): boolean {
  return readFileSync(join(directory, fileName), "utf8").includes(`"type":"change","seq":${seq},`);
}

function sizeOf(): number {
  return statSync(join(directory, fileName), { throwIfNoEntry: false })?.size ?? 0;
}
