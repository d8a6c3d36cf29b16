// `rest_client_*`: what requests to the API server cost.
import type { Metrics } from "./metrics.ts";

export type RequestFacts = {
  readonly verb: string;
  /** `192.168.0.1:6443` */
  readonly host: string;
  /** null: there was no answer. */
  readonly code: number | null;
  readonly seconds: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** Time spent waiting for our own rate limit. */
  readonly waitedSeconds: number;
  readonly isRetry: boolean;
};

/** For a watch, `seconds` is the time until the answer began and `responseBytes` is 0: it has no end. */
export function observeRequest(metrics: Metrics, facts: RequestFacts): void {
  const { verb, host } = facts;
  const code = facts.code === null ? "<error>" : String(facts.code);
  metrics.requests.with({ code, method: verb, host }).add();
  metrics.requestDuration.with({ verb, host }).observe(facts.seconds);
  metrics.requestSize.with({ verb, host }).observe(facts.requestBytes);
  if (facts.code !== null) metrics.responseSize.with({ verb, host }).observe(facts.responseBytes);
  metrics.rateLimiterDuration.with({ verb, host }).observe(facts.waitedSeconds);
  if (facts.isRetry) metrics.requestRetries.with({ code, verb, host }).add();
}
