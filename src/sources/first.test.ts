// Looking once at a cluster that is not there.
import { expect, it } from "vitest";
import { fastClock } from "../../test/support/fast-clock.ts";
import { systemClock } from "../observe/clock.ts";
import { firstSnapshot } from "./first.ts";
import { openSource, parseSourceSpec } from "./index.ts";
import { CannotReach } from "./source.ts";
import { realWorld } from "./world.ts";

const look = (source: string) =>
  firstSnapshot(parseSourceSpec(source, "test"), "node-a", fastClock(100), new AbortController().signal);

it("gives up after a while, and says why", async () => {
  await expect(look("http://127.0.0.1:1")).rejects.toThrow(CannotReach);
  await expect(look("http://127.0.0.1:1")).rejects.toThrow(/Cannot read the cluster: .*ECONNREFUSED/);
});

it.each(["files:/nonexistent", "kubeconfig:/nonexistent"])(
  "a source that cannot be opened (%s) says so at once, and does not hold the process",
  async (source) => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout");
    const before = timers().length;
    const life = new AbortController().signal;
    const opening = openSource(parseSourceSpec(source, "test"), "node-a", realWorld(systemClock), life);
    await expect(opening).rejects.toThrow(CannotReach);
    expect(timers()).toHaveLength(before);
  },
);
