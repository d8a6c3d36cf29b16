// The current health of this proxy: updated by events, read by probes and metrics.
import { type Clock, type Moment, momentOf } from "./clock.ts";
import {
  afterEvent,
  type HealthEvent,
  type HealthSettings,
  initialHealth,
  type Verdict,
  verdictOf,
  type WatchAges,
} from "./health.ts";

export type ProxyHealth = {
  readonly report: (event: HealthEvent) => void;
  /** null: the cluster has no such Node. */
  readonly setNode: (node: { readonly eligibleForLoadBalancers: boolean } | null) => void;
  readonly nodeEligible: () => boolean;
  /** As configured, unless `answers` is given. */
  readonly verdict: (now?: Moment, answers?: HealthSettings["answers"]) => Verdict;
  /** Sets the function that returns the age of watches; until then there are none. */
  readonly setWatchAges: (ages: () => WatchAges) => void;
  readonly watchAges: () => WatchAges;
};

export function openHealth(settings: HealthSettings, clock: Clock): ProxyHealth {
  let state = initialHealth;
  let eligible = false;
  let ages = (): WatchAges => new Map();
  return {
    report(event) {
      state = afterEvent(state, event, momentOf(clock));
    },
    setNode(node) {
      eligible = node?.eligibleForLoadBalancers ?? false;
    },
    nodeEligible: () => eligible,
    verdict: (now = momentOf(clock), answers = settings.answers) =>
      verdictOf(state, ages(), now, { ...settings, answers }),
    setWatchAges(next) {
      ages = next;
    },
    watchAges: () => ages(),
  };
}
