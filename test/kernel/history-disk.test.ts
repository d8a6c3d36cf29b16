// A saved history on a file system that is really full: it continues in memory, reports it, and is saved again when there is room.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HistoryLog } from "../../src/history/log.ts";
import { Cluster } from "../../src/manifests/cluster.ts";
import { fileName, HistoryDirectory } from "../../src/observe/history/directory.ts";
import { HistoryRecorder } from "../../src/observe/history/recorder.ts";
import { endpoint, node, service, slice } from "../objects.ts";
import { logLines } from "../support/log-lines.ts";
import { manualClock } from "../support/manual-clock.ts";
import { isRoot } from "./netns.ts";

describe.skipIf(!isRoot)("a history directory of 1 MB", () => {
  let directory: string;
  const signal = new AbortController().signal;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "turnout-full-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", directory]);
  });

  afterEach(() => {
    execFileSync("umount", ["-l", directory]);
    rmSync(directory, { recursive: true });
  });

  it("that is full: changes stay in memory, and all are saved when there is room again", async () => {
    const clock = manualClock();
    const { log, lines } = logLines(clock);
    const history = new HistoryLog({ bytes: 8_000_000, ageMs: 86_400_000 });
    const store = new HistoryDirectory({ directory, node: "node-a", clock, log, signal });
    const recorder = new HistoryRecorder({ log: history, node: "node-a", families: ["ipv4"], clock, store });
    const cluster = new Cluster("node-a");
    cluster.upsert("Service", service());
    cluster.upsert("Node", node("node-a"));
    let count = 0;
    const change = async () => {
      const changed = slice([endpoint(`10.0.1.${++count}`)]);
      cluster.upsert("EndpointSlice", changed, { version: String(count), at: 1 });
      recorder.arrived(cluster.take());
      clock.advance(1000);
      await recorder.idle();
    };
    const saved = () => readFileSync(join(directory, fileName), "utf8");
    const isSaved = () => {
      clock.advance(500);
      return saved().includes(`"type":"change","seq":${history.lastSeq},`);
    };
    const unsavedAfter = (ms: number) => {
      clock.advance(ms);
      return store.unsaved();
    };
    await change();
    await change();
    await expect.poll(isSaved, { timeout: 10_000 }).toBe(true);
    const before = saved();
    fill(join(directory, "other"));
    for (let i = 0; i < 20; i++) await change();
    await expect.poll(() => unsavedAfter(500), { timeout: 10_000 }).toContain("ENOSPC");
    expect(lines().filter((line) => line.includes("Cannot save the history"))).toHaveLength(1);
    // Nothing that was saved is lost, at most the last line is cut off.
    expect(saved().startsWith(before)).toBe(true);
    await change();
    expect(history.stored.map(({ seq }) => seq)).toEqual(Array.from({ length: 22 }, (_, i) => i + 1));
    clock.advance(60_000);
    await expect.poll(() => store.unsaved()).toContain("ENOSPC");
    rmSync(join(directory, "other"));
    await expect.poll(() => unsavedAfter(60_000), { timeout: 10_000 }).toBeNull();
    expect(saved().match(/"type":"change"/g)).toHaveLength(22);
    expect(readdirSync(directory)).toEqual([fileName]);
    expect(lines().join()).toContain("The history is saved again");
    await recorder.close();
  });
});

/** Until there is no room for another byte. */
function fill(path: string): void {
  for (const size of [65_536, 4096, 1]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: "a" });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }
}
