// Detects that another program flushed the tables: an unused chain of ours, or a required rule, is missing.
import type { Family } from "../../model/address.ts";
import type { Clock } from "../../model/clock.ts";
import type { PlacedRule, TableName } from "../../plan/iptables/types.ts";
import { chainState } from "./chain-state.ts";
import type { Start } from "./command.ts";
import { missingGuard } from "./guards.ts";

export type CanaryOptions = {
  readonly family: Family;
  readonly chain: string;
  readonly start: Start;
  readonly clock: Clock;
  /** Called before every check: it may change. */
  readonly periodMs: () => number;
  /** Whether the canaries should be there: not before they are written for the first time. */
  readonly isSet: () => boolean;
  /** Rules that must be there too; a canary stays when a single chain is flushed. */
  readonly guards: () => readonly PlacedRule[];
  readonly onGone: (what: string) => void;
};

const flushPollMs = 100;
/** A shorter period takes effect after this time. */
const longestNapMs = 10_000;
const flushPatienceMs = 5000;

/** Checks once a period until the signal aborts. A program that flushes one table usually flushes all: wait for the others. */
export async function watchCanary(options: CanaryOptions, signal: AbortSignal): Promise<void> {
  while (await sleep(options.periodMs, options.clock, signal)) {
    if (!options.isSet()) continue;
    if ((await stateOf("mangle", options, signal)) !== "gone") {
      const missing = await missingGuard(options.guards(), options.family, options.start, signal);
      if (missing !== null && options.isSet() && !signal.aborted) options.onGone(missing);
      continue;
    }
    const all = await othersAreGone(options, signal);
    if (signal.aborted) return;
    options.onGone(all ? "all tables were flushed" : "table mangle was flushed, others were not");
  }
}

async function othersAreGone(options: CanaryOptions, signal: AbortSignal): Promise<boolean> {
  const end = options.clock.steady() + flushPatienceMs;
  for (;;) {
    const states = [await stateOf("nat", options, signal), await stateOf("filter", options, signal)];
    if (states.every((state) => state === "gone")) return true;
    if (options.clock.steady() >= end || !(await sleep(() => flushPollMs, options.clock, signal)))
      return false;
  }
}

function stateOf(table: TableName, { family, chain, start }: CanaryOptions, signal: AbortSignal) {
  return chainState({ table, name: chain }, family, start, signal);
}

/** False when the signal aborted. */
function sleep(ms: () => number, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const start = clock.steady();
  return new Promise((resolve) => {
    let cancel = () => {};
    const stop = () => {
      cancel();
      resolve(false);
    };
    const check = () => {
      const left = start + ms() - clock.steady();
      if (left > 0) {
        cancel = clock.after(Math.min(left, longestNapMs), check);
        return;
      }
      signal.removeEventListener("abort", stop);
      resolve(true);
    };
    if (signal.aborted) return resolve(false);
    signal.addEventListener("abort", stop, { once: true });
    check();
  });
}
