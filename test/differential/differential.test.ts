// The real kube-proxy and Turnout, side by side: on the same clusters every packet must meet the same fate.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { reasonToSkip } from "../kernel/netns.ts";
import { generateConfiguration, generateServices, generateState, surroundings } from "../reference/cases.ts";
import type { KubeObject } from "../reference/objects.ts";
import type { Mode } from "../reference/proxy.ts";
import { seeded } from "../reference/random.ts";
import { type Arena, createArena, type Sides } from "./arena.ts";
import { judge } from "./judge.ts";
import { ourProgram, reasonNotToRun } from "./program.ts";

const number = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise);

const firstSeed = number("TURNOUT_SEED", 1);
const histories = number("TURNOUT_HISTORIES", 2);
const statesPerHistory = number("TURNOUT_STATES", 2);
const modes = (process.env.TURNOUT_MODES ?? "nftables,iptables").split(",") as Mode[];

const assets = findAssets("kube-proxy");
const reason = reasonToSkip() ?? (assets.found ? reasonNotToRun(ourProgram) : assets.reason);

describe("kube-proxy and Turnout, side by side", () => {
  let arena: Arena;
  beforeAll(async () => {
    if (reason === null && assets.found) arena = await createArena([assets.paths["kube-proxy"], ourProgram]);
  });
  afterAll(() => arena?.close());

  const seeds = Array.from({ length: histories }, (_, i) => firstSeed + i);
  for (const mode of modes)
    it.for(seeds)(`${mode}: history %i meets the same fates`, async (seed, { skip }) => {
      if (reason !== null) return skip(reason);
      const sides = await arena.start(generateConfiguration(seeded(seed), mode));
      try {
        for (let step = 0; step < statesPerHistory; step++)
          await compareState(sides, mode, seed * 1000 + step);
      } finally {
        await arena.stop(sides);
      }
    });

  async function compareState(sides: Sides, mode: Mode, seed: number): Promise<void> {
    const objects = generateState(seed);
    await arena.show(sides, objects);
    const { unexplained } = await judge(sides, mode, objects);
    if (unexplained.length === 0) return;
    const { texts, minimal } = await minimise(sides, mode, seed, unexplained[0]!.service, unexplained);
    expect.fail(`state ${seed}, ${mode}:\n${texts.join("\n")}\nminimal state: ${JSON.stringify(minimal)}`);
  }

  /** Tries whether the Service of the first difference shows it alone. */
  async function minimise(
    sides: Sides,
    mode: Mode,
    seed: number,
    service: string,
    found: readonly { readonly text: string }[],
  ): Promise<{ texts: string[]; minimal: readonly KubeObject[] }> {
    const alone = generateServices(seed).find(({ name }) => name === service);
    const texts = found.map(({ text }) => text);
    if (alone === undefined) return { texts, minimal: generateState(seed) };
    const minimal = [...surroundings(seed), ...alone.objects];
    await arena.show(sides, minimal);
    const { unexplained } = await judge(sides, mode, minimal);
    return { texts, minimal: unexplained.length > 0 ? minimal : generateState(seed) };
  }
});
