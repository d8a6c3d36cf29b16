// Health as a state machine: what happened to each family and watch, and what that means at a moment.
import { type Family, families } from "../model/address.ts";
import type { Moment } from "./clock.ts";

export type HealthEvent =
  /** The family's sync loop started. */
  | { readonly kind: "started"; readonly family: Family }
  /** A Sync was requested. */
  | { readonly kind: "queued"; readonly family: Family }
  /** A Sync succeeded, apart from the objects the kernel refused. */
  | { readonly kind: "synced"; readonly family: Family; readonly refused: readonly string[] }
  | { readonly kind: "failed"; readonly family: Family; readonly message: string }
  /** Another program changed our rules; a comparison with the host follows. */
  | { readonly kind: "drifted"; readonly family: Family; readonly message: string }
  /** The host was compared with the Plan, and repaired where it differed. */
  | { readonly kind: "compared"; readonly family: Family }
  /** Reading back showed that the kernel does not hold the Plan, or could not show that it does. */
  | { readonly kind: "differs"; readonly family: Family; readonly message: string };

/** What happened to each family; immutable. */
export type HealthState = Readonly<Partial<Record<Family, FamilyState>>>;

/** Milliseconds since the API server last sent anything about each watched resource. */
export type WatchAges = ReadonlyMap<string, number>;

type Trouble = { readonly since: Moment; readonly message: string };

type FamilyState = {
  /** null: the sync loop has not started. */
  readonly started: Moment | null;
  readonly updated: Moment | null;
  readonly oldestPending: Moment | null;
  readonly synced: boolean;
  readonly failing: Trouble | null;
  readonly differing: Trouble | null;
  readonly drifted: Trouble | null;
  readonly refused: Trouble | null;
};

export type HealthSettings = {
  /** 2 × syncPeriod. */
  readonly timeoutMs: () => number;
  /** `upstream` answers exactly as kube-proxy would; `honest` also reports what kube-proxy does not. */
  readonly answers: "honest" | "upstream";
  /** How long a watch may be silent before it is reported. */
  readonly silentMs: number;
};

export type ReasonKind =
  | "late"
  | "failing"
  | "differs"
  | "drifted"
  | "never-synced"
  | "refused"
  | "silent-watch";

export type Reason = {
  readonly kind: ReasonKind;
  readonly family: Family | null;
  readonly since: Moment;
  readonly message: string;
};

export type Verdict = {
  /** What `/healthz` and the health check node ports go by. */
  readonly healthy: boolean;
  /** What `/livez` goes by: false only where a restart could help. */
  readonly live: boolean;
  /** When a family was last updated, the newest of all; null when none was. */
  readonly newest: Moment | null;
  readonly families: readonly FamilyVerdict[];
  readonly reasons: readonly Reason[];
};

export type FamilyVerdict = {
  readonly family: Family;
  readonly updated: Moment;
  readonly healthy: boolean;
  readonly live: boolean;
};

/**
 * What a reason does. A refused object or an unreachable API server must not take a working node, or all nodes at
 * once, out of their load balancers: these are only reported. A restart does not help while the API server is down.
 */
const consequences = {
  late: { unhealthy: true, dead: true },
  failing: { unhealthy: true, dead: true },
  differs: { unhealthy: true, dead: true },
  drifted: { unhealthy: false, dead: false },
  "never-synced": { unhealthy: true, dead: false },
  refused: { unhealthy: false, dead: false },
  "silent-watch": { unhealthy: false, dead: false },
} as const satisfies Record<ReasonKind, { unhealthy: boolean; dead: boolean }>;

export const initialHealth: HealthState = {};

const initialFamily: FamilyState = {
  started: null,
  updated: null,
  oldestPending: null,
  synced: false,
  failing: null,
  differing: null,
  drifted: null,
  refused: null,
};

export function afterEvent(state: HealthState, event: HealthEvent, at: Moment): HealthState {
  return { ...state, [event.family]: afterFamilyEvent(state[event.family] ?? initialFamily, event, at) };
}

function afterFamilyEvent(before: FamilyState, event: HealthEvent, at: Moment): FamilyState {
  switch (event.kind) {
    case "started":
      return { ...before, started: at, updated: at, oldestPending: null };
    case "queued":
      return { ...before, oldestPending: before.oldestPending ?? at };
    case "synced":
      return {
        ...initialFamily,
        started: before.started,
        updated: at,
        synced: true,
        drifted: before.drifted,
        refused: refusal(before, event.refused, at),
      };
    case "failed":
      return { ...before, failing: { since: before.failing?.since ?? at, message: event.message } };
    case "drifted":
      return { ...before, drifted: { since: before.drifted?.since ?? at, message: event.message } };
    case "compared":
      return { ...before, drifted: null };
    case "differs":
      return { ...before, differing: { since: before.differing?.since ?? at, message: event.message } };
  }
}

function refusal(before: FamilyState, refused: readonly string[], at: Moment): Trouble | null {
  const first = refused[0];
  if (first === undefined) return null;
  const message = refused.length === 1 ? first : `${first} (and ${refused.length - 1} more)`;
  return { since: before.refused?.since ?? at, message };
}

/** What the state means now. */
export function verdictOf(
  state: HealthState,
  watches: WatchAges,
  now: Moment,
  settings: HealthSettings,
): Verdict {
  const reasons: Reason[] = [];
  const verdicts: FamilyVerdict[] = [];
  for (const family of families) {
    const known = state[family];
    // A family whose loop never started does not count, as upstream.
    if (known?.updated == null) continue;
    const own = familyReasons(family, known, now, settings);
    reasons.push(...own);
    verdicts.push({ family, updated: known.updated, healthy: !own.some(unhealthy), live: !own.some(dead) });
  }
  const honest = settings.answers === "honest";
  return {
    healthy: verdicts.every((one) => one.healthy),
    live: verdicts.every((one) => one.live),
    newest: verdicts.map((one) => one.updated).reduce<Moment | null>(later, null),
    families: verdicts,
    reasons: honest ? [...reasons, ...silentWatches(watches, now, settings)] : [],
  };
}

function familyReasons(family: Family, state: FamilyState, now: Moment, settings: HealthSettings): Reason[] {
  const reasons: Reason[] = [];
  const add = (kind: ReasonKind, since: Moment, message: string) =>
    reasons.push({ kind, family, since, message });
  const late = (since: Moment | undefined | null) =>
    since != null && now.steady - since.steady >= settings.timeoutMs();
  if (late(state.oldestPending)) add("late", state.oldestPending!, "a queued change has not been applied");
  if (settings.answers === "upstream") return reasons;
  if (late(state.failing?.since))
    add("failing", state.failing!.since, `every Sync fails: ${state.failing!.message}`);
  if (late(state.differing?.since)) add("differs", state.differing!.since, state.differing!.message);
  if (state.drifted !== null)
    add("drifted", state.drifted.since, `not yet repaired: ${state.drifted.message}`);
  if (!state.synced && late(state.started))
    add("never-synced", state.started!, "no Sync has succeeded since the start");
  if (state.refused !== null) add("refused", state.refused.since, state.refused.message);
  return reasons;
}

function silentWatches(watches: WatchAges, now: Moment, settings: HealthSettings): Reason[] {
  return [...watches]
    .filter(([, age]) => age >= settings.silentMs)
    .map(([resource, age]) => ({
      kind: "silent-watch" as const,
      family: null,
      since: { wall: now.wall - age, steady: now.steady - age },
      message: `the API server sends nothing about ${resource}`,
    }));
}

function unhealthy(reason: Reason): boolean {
  return consequences[reason.kind].unhealthy;
}

function dead(reason: Reason): boolean {
  return consequences[reason.kind].dead;
}

function later(a: Moment | null, b: Moment): Moment {
  return a !== null && a.steady >= b.steady ? a : b;
}
