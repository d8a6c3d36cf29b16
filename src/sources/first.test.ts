// The first Snapshot of a cluster that does not respond.
import { join } from "node:path";
import { expect, it } from "vitest";
import { fastClock } from "../../test/support/fast-clock.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { firstSnapshot } from "./first.ts";
import { openSource, parseSourceSpec } from "./index.ts";
import { SourceError } from "./source.ts";
import { realWorld } from "./world.ts";

const read = (source: string) =>
  firstSnapshot(parseSourceSpec(source, "test"), "node-a", fastClock(10), new AbortController().signal);

it("times out with the cause", async () => {
  await expect(read("http://127.0.0.1:1")).rejects.toThrow(SourceError);
  await expect(read("http://127.0.0.1:1")).rejects.toThrow(/Cannot read the cluster: .*ECONNREFUSED/);
});

it.each(["files:/nonexistent", "kubeconfig:/nonexistent"])(
  "a source that cannot be opened (%s) fails immediately, and leaves no timer",
  async (source) => {
    const clock = manualClock();
    const life = new AbortController().signal;
    const opening = openSource(parseSourceSpec(source, "test"), "node-a", realWorld(clock), life);
    await expect(opening).rejects.toThrow(SourceError);
    expect(clock.pending()).toBe(0);
  },
);

it("leaves no timer when it has its Snapshot", async () => {
  const clock = manualClock(Date.now() + 60_000);
  const spec = parseSourceSpec(`files:${join(import.meta.dirname, "../../test/support/shop")}`, "test");
  const { ipv4 } = await firstSnapshot(spec, "node-a", clock, new AbortController().signal);
  expect(ipv4.ports.size).toBeGreaterThan(0);
  await expect.poll(() => clock.pending()).toBe(0);
});
