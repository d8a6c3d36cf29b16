// The real kube-proxy and Turnout, side by side: on the same clusters every packet must meet the same fate.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { reasonToSkip } from "../kernel/netns.ts";
import { generateConfiguration, generateServices, generateState, surroundings } from "../reference/cases.ts";
import type { KubeObject } from "../reference/objects.ts";
import type { Mode } from "../reference/proxy.ts";
import { seeded } from "../reference/random.ts";
import { type Arena, createArena, type Sides } from "./arena.ts";
import { judge, type Verdict } from "./judge.ts";
import { ourProgram, reasonNotToRun } from "./program.ts";

const number = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise);

const firstSeed = number("TURNOUT_SEED", 1);
const histories = number("TURNOUT_HISTORIES", 2);
const statesPerHistory = number("TURNOUT_STATES", 2);
const modes = (process.env.TURNOUT_MODES ?? "nftables,iptables").split(",") as Mode[];

const assets = findAssets("kube-proxy");
const reason = reasonToSkip() ?? (assets.found ? reasonNotToRun(ourProgram) : assets.reason);

/** A state takes about ten seconds; what takes this long hangs. */
const timeout = 60_000 * (1 + statesPerHistory);

describe("kube-proxy and Turnout, side by side", () => {
  let arena: Arena;
  const verdicts: Verdict[] = [];
  beforeAll(async () => {
    if (reason === null && assets.found) arena = await createArena([assets.paths["kube-proxy"], ourProgram]);
  });
  afterAll(async () => {
    process.stdout.write(`${summary(verdicts)}\n`);
    await arena?.close();
  });

  const seeds = Array.from({ length: histories }, (_, i) => firstSeed + i);
  for (const mode of modes)
    it.for(seeds)(`${mode}: history %i meets the same fates`, { timeout }, async (seed, { skip, signal }) => {
      if (reason !== null) return skip(reason);
      const sides = await arena.start(generateConfiguration(seeded(seed), mode));
      try {
        for (let step = 0; step < statesPerHistory; step++)
          verdicts.push(await compareState(sides, mode, seed * 1000 + step, signal));
      } finally {
        await arena.stop(sides);
      }
    });

  async function compareState(sides: Sides, mode: Mode, seed: number, signal: AbortSignal): Promise<Verdict> {
    const objects = generateState(seed);
    await arena.show(sides, objects);
    const verdict = await judge(sides, mode, objects, signal);
    if (verdict.unexplained.length === 0) return verdict;
    const { texts, minimal } = await minimise(sides, mode, seed, verdict.unexplained, signal);
    expect.fail(`state ${seed}, ${mode}:\n${texts.join("\n")}\nminimal state: ${JSON.stringify(minimal)}`);
  }

  /** Tries whether the Service of the first difference shows it alone. */
  async function minimise(
    sides: Sides,
    mode: Mode,
    seed: number,
    found: Verdict["unexplained"],
    signal: AbortSignal,
  ): Promise<{ texts: string[]; minimal: readonly KubeObject[] }> {
    const alone = generateServices(seed).find(({ name }) => name === found[0]!.service);
    const texts = found.map(({ text }) => text);
    if (alone === undefined) return { texts, minimal: generateState(seed) };
    const minimal = [...surroundings(seed), ...alone.objects];
    await arena.show(sides, minimal);
    const { unexplained } = await judge(sides, mode, minimal, signal);
    return { texts, minimal: unexplained.length > 0 ? minimal : generateState(seed) };
  }
});

/** `8 states, 3120 cells compared, 4 of them explained`: what the states that passed amount to. */
function summary(verdicts: readonly Verdict[]): string {
  const cells = verdicts.reduce((sum, verdict) => sum + verdict.cells, 0);
  const explained = verdicts.flatMap((verdict) => [...verdict.explained.values()]).reduce((a, b) => a + b, 0);
  return `${verdicts.length} states, ${cells} cells compared, ${explained} of them explained`;
}
