// The health of this proxy as it lives: takes events, remembers the node, answers who asks.
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
  readonly tell: (event: HealthEvent) => void;
  /** null: the cluster does not know this node. */
  readonly setNode: (node: { readonly eligibleForLoadBalancers: boolean } | null) => void;
  readonly nodeEligible: () => boolean;
  /** As configured, unless other answers are asked for. */
  readonly verdict: (now?: Moment, answers?: HealthSettings["answers"]) => Verdict;
  /** Tells where to ask for the age of watches; until then there are none. */
  readonly askAges: (ages: () => WatchAges) => void;
  readonly watchAges: () => WatchAges;
};

export function openHealth(settings: HealthSettings, clock: Clock): ProxyHealth {
  let state = initialHealth;
  let eligible = false;
  let ages = (): WatchAges => new Map();
  return {
    tell(event) {
      state = afterEvent(state, event, momentOf(clock));
    },
    setNode(node) {
      eligible = node?.eligibleForLoadBalancers ?? false;
    },
    nodeEligible: () => eligible,
    verdict: (now = momentOf(clock), answers = settings.answers) =>
      verdictOf(state, ages(), now, { ...settings, answers }),
    askAges(next) {
      ages = next;
    },
    watchAges: () => ages(),
  };
}
