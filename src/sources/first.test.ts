// The first Snapshot of a cluster that does not respond.
import { afterEach, expect, it, vi } from "vitest";
import { fastClock } from "../../test/support/fast-clock.ts";
import { systemClock } from "../observe/clock.ts";
import { firstSnapshot } from "./first.ts";
import { openSource, parseSourceSpec } from "./index.ts";
import { SourceError } from "./source.ts";
import { realWorld } from "./world.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const look = (source: string) =>
  firstSnapshot(parseSourceSpec(source, "test"), "node-a", fastClock(100), new AbortController().signal);

it("times out with the cause", async () => {
  await expect(look("http://127.0.0.1:1")).rejects.toThrow(SourceError);
  await expect(look("http://127.0.0.1:1")).rejects.toThrow(/Cannot read the cluster: .*ECONNREFUSED/);
});

it.each(["files:/nonexistent", "kubeconfig:/nonexistent"])(
  "a source that cannot be opened (%s) fails immediately, and does not keep the process alive",
  async (source) => {
    const holds = vi.spyOn(globalThis, "setInterval");
    const ends = vi.spyOn(globalThis, "clearInterval");
    const life = new AbortController().signal;
    const opening = openSource(parseSourceSpec(source, "test"), "node-a", realWorld(systemClock), life);
    await expect(opening).rejects.toThrow(SourceError);
    expect(holds).toHaveBeenCalled();
    expect(ends.mock.calls.map(([hold]) => hold)).toEqual(holds.mock.results.map(({ value }) => value));
  },
);
