// Looking once at a cluster that is not there.
import { expect, it } from "vitest";
import { fastClock } from "../../test/support/fast-clock.ts";
import { firstSnapshot } from "./first.ts";
import { parseSourceSpec } from "./index.ts";
import { CannotReach } from "./source.ts";

const look = (source: string) =>
  firstSnapshot(parseSourceSpec(source, "test"), "node-a", fastClock(100), new AbortController().signal);

it("gives up after a while, and says why", async () => {
  await expect(look("http://127.0.0.1:1")).rejects.toThrow(CannotReach);
  await expect(look("http://127.0.0.1:1")).rejects.toThrow(/Cannot read the cluster: .*ECONNREFUSED/);
});

it.each(["files:/nonexistent", "kubeconfig:/nonexistent"])(
  "says at once that there is no %s, and does not hold the process",
  async (source) => {
    const before = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    await expect(look(source)).rejects.toThrow(CannotReach);
    expect(process.getActiveResourcesInfo().filter((kind) => kind === "Timeout")).toHaveLength(before);
  },
);
