// A saved history survives a restart and a kill, and a file that cannot be used is kept aside.
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { endpoint, node, service, slice } from "../../../test/objects.ts";
import { logLines } from "../../../test/support/log-lines.ts";
import { type ManualClock, manualClock } from "../../../test/support/manual-clock.ts";
import { plainRecord } from "../../../test/support/sync-record.ts";
import { finished } from "../../history/change.ts";
import { HistoryLog, stateAt } from "../../history/log.ts";
import { Cluster } from "../../manifests/cluster.ts";
import { endpointKey, type Snapshot } from "../../model/snapshot.ts";
import { fileName, HistoryDirectory } from "./directory.ts";
import { HistoryRecorder } from "./recorder.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "turnout-history-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** A daemon as far as its history is concerned. */
function start(
  options: { clock?: ManualClock; bytes?: number; node?: string; path?: string; open?: typeof open } = {},
) {
  const { clock = manualClock(), bytes = 8_000_000, node: name = "node-a", path = directory } = options;
  const { open: openFile = open } = options;
  const history = new HistoryLog({ bytes, ageMs: 86_400_000 });
  const { log, lines } = logLines(clock);
  const stop = new AbortController();
  const { signal } = stop;
  const store = new HistoryDirectory({ directory: path, node: name, clock, log, signal, open: openFile });
  const recorder = new HistoryRecorder({ log: history, node: name, families: ["ipv4"], clock, store });
  return { clock, history, recorder, store, lines, stop };
}

const web = "shop/web/tcp/http";
const file = () => join(directory, fileName);
const newFile = () => `${file()}.new`;

/** Snapshots of a Service whose endpoint is replaced again and again. */
function cluster() {
  const made = new Cluster("node-a");
  made.upsert("Service", service());
  made.upsert("Node", node("node-a"));
  let count = 0;
  return {
    next(): Snapshot {
      made.upsert("EndpointSlice", slice([endpoint(`10.0.1.${++count}`)]), { version: String(count), at: 1 });
      return made.take();
    },
  };
}

function endpointAt(history: HistoryLog, at: number): string {
  const state = finished(stateAt(history, at));
  if ("kind" in state) return state.reason;
  return state.ipv4.ports.get(web)!.endpoints.map(endpointKey).join();
}

/** Until the newest change is in the file, whether it was appended or is part of a file that was just written again, and none is being written. */
async function saved({ store, clock, history }: ReturnType<typeof start>): Promise<void> {
  const isSaved = () => {
    clock.advance(500);
    if (existsSync(newFile())) return false;
    return readFileSync(file(), "utf8").includes(`"type":"change","seq":${history.lastSeq},`);
  };
  await expect.poll(isSaved).toBe(true);
  expect(store.unsaved()).toBeNull();
}

it("continues after a restart, with what changed meanwhile and what was written", async () => {
  const world = cluster();
  const first = start();
  const times: number[] = [];
  for (let i = 0; i < 4; i++) {
    first.clock.advance(60_000);
    times.push(first.clock.wall());
    first.recorder.arrived(world.next());
    first.recorder.taken("ipv4");
    first.recorder.synced({ ...plainRecord, operations: i, finishedAt: first.clock.wall() + 3 });
    await first.recorder.idle();
  }
  await first.recorder.close();
  world.next();
  const second = start({ clock: first.clock });
  first.clock.advance(60_000);
  second.recorder.arrived(world.next());
  await second.recorder.idle();
  expect(times.map((at) => endpointAt(second.history, at))).toEqual(
    [1, 2, 3, 4].map((i) => `10.0.1.${i}:8080`),
  );
  expect(endpointAt(second.history, first.clock.wall())).toBe("10.0.1.6:8080");
  expect(endpointAt(second.history, times[0]! - 1)).toMatch(/^history begins at .*Z$/);
  const stored = second.history.stored;
  expect(stored.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
  expect(stored.map(({ written }) => written.ipv4?.operations)).toEqual([1, 2, 3, undefined]);
  expect(JSON.parse(stored[3]!.text)).toMatchObject({ origin: "restart", causes: [] });
  expect(JSON.parse(stored[0]!.text)).toMatchObject({ causes: [{ name: "web-1", resourceVersion: "2" }] });
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  await second.recorder.close();
});

it("a restart without a change adds none", async () => {
  const world = new Cluster("node-a");
  world.upsert("Service", service());
  const first = start();
  first.recorder.arrived(world.take());
  await first.recorder.close();
  const second = start({ clock: first.clock });
  const again = new Cluster("node-a");
  again.upsert("Service", service());
  second.recorder.arrived(again.take());
  await second.recorder.idle();
  expect([second.history.size, second.history.beginsAt]).toEqual([0, first.history.beginsAt]);
  await second.recorder.close();
});

it("has every change in the file, without an orderly end", async () => {
  const world = cluster();
  const first = start();
  first.recorder.arrived(world.next());
  await first.recorder.idle();
  for (let i = 0; i < 5; i++) {
    first.recorder.arrived(world.next());
    // No Sync ends: the record is made nevertheless.
    first.clock.advance(250);
    await first.recorder.idle();
    await saved(first);
  }
  // As after kill -9: the file is read as it is now.
  const copy = mkdtempSync(join(tmpdir(), "turnout-history-"));
  copyFileSync(file(), join(copy, fileName));
  const second = start({ clock: first.clock, path: copy });
  second.recorder.arrived(first.history.latest!);
  await second.recorder.idle();
  expect(second.history.stored.map(({ seq, text }) => [seq, text])).toEqual(
    first.history.stored.map(({ seq, text }) => [seq, text]),
  );
  expect(second.history.size).toBe(5);
  await second.recorder.close();
  await first.recorder.close();
  rmSync(copy, { recursive: true });
});

it("loses only a line that was cut off", async () => {
  const world = cluster();
  const first = start();
  for (let i = 0; i < 4; i++) {
    first.recorder.arrived(world.next());
    await first.recorder.idle();
  }
  await first.recorder.close();
  const text = readFileSync(file(), "utf8");
  writeFileSync(file(), text.slice(0, -20));
  const second = start({ clock: first.clock });
  second.recorder.arrived(first.history.latest!);
  await second.recorder.idle();
  expect(second.lines().join()).toContain("the last line, which was cut off");
  // The change itself is found again by comparison.
  expect(second.history.stored.map(({ text }) => JSON.parse(text).origin)).toEqual([
    "watch",
    "watch",
    "restart",
  ]);
  expect(readdirSync(directory)).toEqual([fileName]);
  await second.recorder.close();
});

describe("a file that cannot be used is kept aside, and an empty history begins", () => {
  const damaged = (line: number) => () => {
    const lines = readFileSync(file(), "utf8").split("\n");
    lines[line] = `${lines[line]!.slice(0, 30)}X${lines[line]!.slice(31)}`;
    writeFileSync(file(), lines.join("\n"));
  };
  it.each([
    ["garbage", () => writeFileSync(file(), Buffer.from([0, 1, 2, 255, 10, 7, 10, 10])), "is damaged"],
    ["an empty file", () => writeFileSync(file(), ""), "it has no header"],
    ["a damaged first line", damaged(0), "line 1 is damaged"],
    ["a damaged line in the middle", damaged(2), "line 3 is damaged"],
    [
      "a file cut off in its checkpoint",
      () => writeFileSync(file(), `${readFileSync(file(), "utf8").split("\n").slice(0, 2).join("\n")}\n`),
      "it is incomplete",
    ],
    [
      "lines of another file at its end",
      () => appendFileSync(file(), readFileSync(file(), "utf8")),
      "is a second header",
    ],
    ["another format", () => rewriteHeader('"version":1', '"version":2'), "it is of format 2"],
    ["another node", () => rewriteHeader('"node":"node-a"', '"node":"node-b"'), 'it is of node \\"node-b\\"'],
    ["another shape", () => rewriteLine(1, () => '{"type":"view"}'), "it cannot be understood"],
  ])("%s", async (_, spoil, reason) => {
    const world = cluster();
    const first = start();
    for (let i = 0; i < 3; i++) {
      first.recorder.arrived(world.next());
      await first.recorder.idle();
    }
    await first.recorder.close();
    spoil();
    const bad = readFileSync(file());
    const second = start({ clock: first.clock });
    second.recorder.arrived(world.next());
    await second.recorder.idle();
    const aside = readdirSync(directory).filter((name) => name.endsWith(".bad"));
    expect(aside).toEqual([`${fileName}.20260102T030405Z.bad`]);
    expect(readFileSync(join(directory, aside[0]!))).toEqual(bad);
    expect(second.lines().join("\n")).toContain(reason);
    expect(second.recorder.head()).toMatchObject({
      dropped: { reason: "unreadable", entries: 0 },
      entries: 0,
      unsaved: null,
      directory,
    });
    await second.recorder.close();
    // The new file is whole.
    const third = start({ clock: first.clock });
    third.recorder.arrived(world.next());
    await third.recorder.idle();
    expect(third.history.size).toBe(1);
    await third.recorder.close();
  });
});

it("a directory that cannot be used leaves the history in memory, which is logged", async () => {
  writeFileSync(join(directory, "file"), "");
  const { recorder, history, lines } = start({ path: join(directory, "file", "below") });
  const world = cluster();
  recorder.arrived(world.next());
  recorder.arrived(world.next());
  await recorder.idle();
  expect(recorder.head().unsaved).toContain("ENOTDIR");
  expect(history.size).toBe(1);
  expect(lines()).toEqual([expect.stringContaining("Cannot save the history; it is kept in memory only")]);
  await recorder.close();
});

it("a file that cannot be read is not replaced", async () => {
  const first = start();
  const world = cluster();
  first.recorder.arrived(world.next());
  await first.recorder.close();
  rmSync(file());
  // A folder in its place cannot be read, even by root.
  mkdirSync(file());
  const second = start({ clock: first.clock });
  second.recorder.arrived(world.next());
  second.recorder.arrived(world.next());
  await second.recorder.idle();
  second.clock.advance(120_000);
  expect(second.recorder.head().unsaved).toContain("EISDIR");
  expect(second.history.size).toBe(1);
  await second.recorder.close();
  expect(statSync(file()).isDirectory()).toBe(true);
});

it("two daemons do not write the same directory", async () => {
  const world = cluster();
  const first = start();
  first.recorder.arrived(world.next());
  await first.recorder.idle();
  const second = start();
  second.recorder.arrived(world.next());
  await expect.poll(() => second.clock.pending()).toBe(1);
  second.stop.abort();
  second.clock.advance(200);
  await second.recorder.idle();
  expect(second.recorder.head().unsaved).toBe("another process uses the directory");
  await second.recorder.close();
  await first.recorder.close();
});

it("writes the file again when it has grown, and loses nothing on the way", async () => {
  const world = cluster();
  const first = start({ bytes: 20_000 });
  first.recorder.arrived(world.next());
  await first.recorder.idle();
  const sizes: number[] = [];
  const inodes = new Set<number>();
  for (let i = 0; i < 120; i++) {
    first.recorder.arrived(world.next());
    first.recorder.taken("ipv4");
    first.recorder.synced({ ...plainRecord, finishedAt: first.clock.wall() });
    await first.recorder.idle();
    if (i % 4 === 0) await saved(first);
    const { size, ino } = statSync(file());
    sizes.push(size);
    inodes.add(ino);
  }
  expect(inodes.size).toBeGreaterThan(1);
  // What is kept, the checkpoint, and as much again.
  expect(Math.max(...sizes)).toBeLessThan(4 * 20_000);
  await first.recorder.close();
  expect(readdirSync(directory)).toEqual([fileName]);
  const second = start({ clock: first.clock, bytes: 20_000 });
  second.recorder.arrived(first.history.latest!);
  await second.recorder.idle();
  expect(second.history.stored.map(({ seq, text, written }) => [seq, text, written])).toEqual(
    first.history.stored.map(({ seq, text, written }) => [seq, text, written]),
  );
  expect(second.history.dropped).toEqual(first.history.dropped);
  await second.recorder.close();
});

it("writes the file again also when each write takes as long as the next change", async () => {
  const world = cluster();
  const change = async () => {
    first.recorder.arrived(world.next());
    await first.recorder.idle();
  };
  const openSlow: typeof open = async (...options) => {
    const handle = await open(...options);
    const sync = handle.datasync.bind(handle);
    handle.datasync = async () => {
      if (existsSync(file()) && existsSync(newFile())) await change();
      await sync();
    };
    return handle;
  };
  const first = start({ bytes: 4_000, open: openSlow });
  await change();
  const { ino } = statSync(file());
  for (let i = 0; i < 12; i++) await change();
  first.clock.advance(500);
  await expect.poll(() => statSync(file()).ino).not.toBe(ino);
  await saved(first);
  await first.recorder.close();
});

it("saves again once the disk accepts it", async () => {
  const world = cluster();
  const first = start({ bytes: 4_000 });
  first.recorder.arrived(world.next());
  await first.recorder.idle();
  // Root may write everywhere, but not a file where a folder is.
  mkdirSync(newFile());
  for (let i = 0; i < 12; i++) {
    first.recorder.arrived(world.next());
    await first.recorder.idle();
    first.clock.advance(500);
  }
  await expect.poll(() => first.recorder.head().unsaved).toContain("EISDIR");
  rmSync(newFile(), { recursive: true });
  first.clock.advance(60_000);
  await expect.poll(() => first.recorder.head().unsaved).toBeNull();
  expect(first.lines().filter((line) => /Cannot save|saved again/.test(line))).toHaveLength(2);
  await first.recorder.close();
  const second = start({ clock: first.clock, bytes: 4_000 });
  second.recorder.arrived(first.history.latest!);
  await second.recorder.idle();
  expect(second.history.stored.map(({ text }) => text)).toEqual(first.history.stored.map(({ text }) => text));
  expect(second.history.size).toBeGreaterThan(2);
  await second.recorder.close();
});

function rewriteHeader(from: string, to: string): void {
  rewriteLine(0, (json) => json.replace(from, to));
}

/** With a valid checksum. */
function rewriteLine(index: number, edit: (json: string) => string): void {
  const lines = readFileSync(file(), "utf8").split("\n");
  const json = edit(lines[index]!.slice(9));
  lines[index] = `${checksum(json)} ${json}`;
  writeFileSync(file(), lines.join("\n"));
}

function checksum(text: string): string {
  let crc = ~0;
  for (const byte of Buffer.from(text)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1));
  }
  return (~crc >>> 0).toString(16).padStart(8, "0");
}
