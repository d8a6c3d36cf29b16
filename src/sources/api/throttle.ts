// The client-side rate limit: a token bucket shared by all requests.
import { type Clock, sleep } from "../world.ts";

export type Limit = { readonly qps: number; readonly burst: number };

/** Resolves when the next request may be sent, in the order of the calls. */
export type Throttle = (signal: AbortSignal) => Promise<void>;

export const unlimited: Throttle = async () => {};

/** A negative rate means no limit, zero means the Go client's default of 5 with bursts of 10. */
export function throttle(limit: Limit, clock: Clock): Throttle {
  const { qps, burst } = limit.qps === 0 ? { qps: 5, burst: 10 } : limit;
  if (qps < 0) return unlimited;
  if (burst <= 0) throw new RangeError(`Cannot limit the API client: burst is ${burst}, but qps is ${qps}`);
  let tokens = burst;
  let countedAt = clock.steady();
  return async (signal) => {
    const now = clock.steady();
    tokens = Math.min(burst, tokens + ((now - countedAt) * qps) / 1000) - 1;
    countedAt = now;
    // Below zero is a place in the queue.
    if (tokens < 0) await sleep(clock, (-tokens * 1000) / qps, signal);
  };
}
