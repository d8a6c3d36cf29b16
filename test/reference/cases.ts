// Generates cluster states and histories that are valid, small, and together use every feature.
import { generateConfiguration } from "./case-configuration.ts";
import { generateService, type ServiceCase, type Slot } from "./case-services.ts";
import { surroundings } from "./case-surroundings.ts";
import type { KubeObject } from "./objects.ts";
import type { Configuration, Mode } from "./proxy.ts";
import { type Random, seeded } from "./random.ts";

export type Case = {
  readonly seed: number;
  readonly configuration: Configuration;
  readonly objects: readonly KubeObject[];
};

/** The seeds of one cluster state; a step of a history changes some of them. */
export type Draft = {
  readonly surroundings: number;
  /** Moves the node ports from Service to Service. */
  readonly shift: number;
  readonly slots: readonly Slot[];
};

/** Adds more than 1,000 endpoints: the iptables mode then writes fewer comments and keeps unused chains. */
export const largeSeed = 0;

export function generateCase(seed: number, mode: Mode): Case {
  const configuration = generateConfiguration(seeded(seed), mode);
  return { seed, configuration, objects: generateState(seed) };
}

export function generateState(seed: number): readonly KubeObject[] {
  return objectsOf(generateHistory(seed, 1)[0]!);
}

/** A cluster, and what becomes of it step by step. */
export function generateHistory(seed: number, states: number): readonly Draft[] {
  const random = seeded(seed ^ 0x5e41ce);
  const history = [newDraft(random, seed === largeSeed ? 600 : random.between(2, 7))];
  while (history.length < states) history.push(changed(random, history.at(-1)!));
  return history;
}

export function objectsOf(draft: Draft): readonly KubeObject[] {
  return [...surroundings(draft.surroundings), ...servicesOf(draft).flatMap(({ objects }) => objects)];
}

export function servicesOf({ slots, shift }: Draft): readonly ServiceCase[] {
  return slots.map((slot) => generateService(slot, shift));
}

function newDraft(random: Random, count: number): Draft {
  const slots = Array.from({ length: count }, (_, i) => newSlot(random, i + 1));
  return { surroundings: anySeed(random), shift: 0, slots };
}

function newSlot(random: Random, n: number): Slot {
  return { n, name: anySeed(random), spec: anySeed(random), slices: anySeed(random) };
}

function anySeed(random: Random): number {
  return random.between(1, 2 ** 31);
}

/** One step: everything new, or only endpoints, Services, which of them there are, their node ports, or the Node. */
function changed(random: Random, draft: Draft): Draft {
  const { slots, shift } = draft;
  // Half of the steps change as little as one Service.
  const chosen = new Set(random.chance(0.5) ? random.sample(slots, 1) : random.some(slots, 0.6));
  const each = (change: (slot: Slot) => Slot): Draft => ({
    ...draft,
    slots: slots.map((slot) => (chosen.has(slot) ? change(slot) : slot)),
  });
  return random.one([
    () => newDraft(random, random.between(2, 7)),
    () => each((slot) => ({ ...slot, slices: anySeed(random) })),
    () => each((slot) => ({ ...slot, slices: anySeed(random) })),
    () => each((slot) => ({ ...slot, spec: anySeed(random) })),
    () => each(({ n }) => newSlot(random, n)),
    () => ({ ...draft, slots: [...slots.filter((slot) => !chosen.has(slot)), ...newcomers(random, slots)] }),
    () => ({ ...draft, shift: shift + random.between(1, 2) }),
    () => ({ ...draft, surroundings: anySeed(random) }),
  ])();
}

function newcomers(random: Random, slots: readonly Slot[]): readonly Slot[] {
  const free = [1, 2, 3, 4, 5, 6, 7, 8].filter((n) => slots.every((slot) => slot.n !== n));
  return random.sample(free, random.between(0, 2)).map((n) => newSlot(random, n));
}
