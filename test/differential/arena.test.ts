// The arena itself: a history that failed, hung or never began does not affect the next.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { processesIn, reasonToSkip } from "../kernel/netns.ts";
import { surroundings } from "../reference/case-surroundings.ts";
import { clusterCIDRs } from "../reference/places.ts";
import { type Arena, createArena } from "./arena.ts";
import { ourProgram, reasonNotToRun } from "./program.ts";

const reason = reasonToSkip() ?? reasonNotToRun(ourProgram);
const configuration = { mode: "nftables", clusterCIDR: clusterCIDRs } as const;

describe("the arena", () => {
  let arena: Arena;
  beforeAll(async () => {
    if (reason === null) arena = await createArena([ourProgram, ourProgram]);
  });
  afterAll(() => arena?.close());
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));

  it("starts again after a history that was given up", async () => {
    const abandoned = await arena.start(configuration, []);
    await arena.show(abandoned, surroundings(1));
    const sides = await arena.start(configuration, []);
    await expect(arena.show(abandoned, surroundings(1))).rejects.toThrow("another history has started");
    await arena.stop(abandoned);
    await arena.show(sides, surroundings(1));
    await arena.stop(sides);
    expect(sides.map(({ world }) => processesIn(world.node.name))).toEqual([[], []]);
  });

  it("starts again after a program that could not start", async () => {
    const broken = { ...configuration, nodePortAddresses: ["nonsense"] };
    const sides = await arena.start(broken, []);
    await expect(arena.show(sides, surroundings(1))).rejects.toThrow("did not sync");
    const healthy = await arena.start(configuration, []);
    await arena.show(healthy, surroundings(1));
    await arena.stop(healthy);
  });
});
