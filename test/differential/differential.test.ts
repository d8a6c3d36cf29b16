// The real kube-proxy and Turnout, side by side: on the same clusters every packet must have the same result.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { familyOf } from "../../src/model/address.ts";
import { findAssets } from "../assets.ts";
import { reasonToSkip } from "../kernel/netns.ts";
import { generateConfiguration } from "../reference/case-configuration.ts";
import { surroundings } from "../reference/case-surroundings.ts";
import { type Draft, generateHistory, objectsOf, servicesOf } from "../reference/cases.ts";
import type { Mode } from "../reference/proxy.ts";
import { seeded } from "../reference/random.ts";
import { type Arena, createArena, type Sides } from "./arena.ts";
import type { Cell } from "./cells.ts";
import { compareHeld, type Held, hold, release } from "./held.ts";
import { hasLeft, outlivesStart } from "./known.ts";
import { check, type Difference, type Verdict } from "./oracle.ts";
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
    if (verdicts.length > 0) process.stdout.write(`${summary(verdicts)}\n`);
    await arena?.close();
  });

  const seeds = Array.from({ length: histories }, (_, i) => firstSeed + i);
  for (const mode of modes)
    it.for(seeds)(
      `${mode}: history %i meets the same results`,
      { timeout },
      async (seed, { skip, signal }) => {
        if (reason !== null) return skip(reason);
        const random = seeded(seed);
        const history = generateHistory(seed, statesPerHistory);
        let configuration = generateConfiguration(random, mode);
        let sides = await arena.start(configuration, surroundings(history[0]!.surroundings));
        let held: readonly Held[] = [];
        try {
          for (const [step, draft] of history.entries()) {
            const restarted = step > 0 && random.chance(0.25);
            if (restarted) {
              // Some restarts come with another configuration, and all with a cluster that has changed meanwhile.
              if (random.chance(0.5)) configuration = generateConfiguration(random, mode);
              sides = await arena.restart(sides, configuration, objectsOf(draft));
            }
            await arena.show(sides, objectsOf(draft));
            const mayOutlive = (cell: Cell): boolean =>
              hasLeft(cell, objectsOf(draft)) ||
              (restarted &&
                cell.protocol === "udp" &&
                outlivesStart(objectsOf(draft), familyOf(cell.to.address)));
            report(await compareHeld(held, mayOutlive), draft);
            release(held);
            held = [];
            const verdict = await compareState(sides, mode, draft, signal);
            verdicts.push(verdict);
            held = await hold(sides, verdict.answered, seeded(seed * 1000 + step));
          }
        } finally {
          release(held);
          await arena.stop(sides);
        }
      },
    );

  async function compareState(sides: Sides, mode: Mode, draft: Draft, signal: AbortSignal): Promise<Verdict> {
    for (const { world } of sides) world.forgetFlows();
    const verdict = await check(sides, mode, objectsOf(draft), signal);
    if (verdict.unexplained.length > 0)
      report(
        verdict.unexplained,
        await minimise(sides, mode, draft, verdict.unexplained[0]!.service, signal),
      );
    return verdict;
  }

  /** The Service of the first difference alone, when it shows a difference alone. */
  async function minimise(
    sides: Sides,
    mode: Mode,
    draft: Draft,
    service: string,
    signal: AbortSignal,
  ): Promise<Draft> {
    const alone = servicesOf(draft).findIndex(({ name }) => name === service);
    if (alone === -1) return draft;
    const minimal = { ...draft, slots: [draft.slots[alone]!] };
    await arena.show(sides, objectsOf(minimal));
    for (const { world } of sides) world.forgetFlows();
    const { unexplained } = await check(sides, mode, objectsOf(minimal), signal);
    return unexplained.length > 0 ? minimal : draft;
  }
});

/** Fails when there are differences, with the state that shows them. */
function report(differences: readonly Difference[], draft: Draft): void {
  if (differences.length === 0) return;
  const texts = differences.map(({ text }) => text).join("\n");
  expect.fail(
    `${differences.length} differences:\n${texts}\nin this state: ${JSON.stringify(objectsOf(draft))}`,
  );
}

/** `8 states, 3120 cells compared, 4 of them explained`: what the states that passed amount to. */
function summary(verdicts: readonly Verdict[]): string {
  const cells = verdicts.reduce((sum, verdict) => sum + verdict.cells, 0);
  const explained = verdicts.flatMap((verdict) => [...verdict.explained.values()]).reduce((a, b) => a + b, 0);
  return `${verdicts.length} states, ${cells} cells compared, ${explained} of them explained`;
}
