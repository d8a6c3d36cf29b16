// `rest_client_*`: what requests to the API server cost.
import type { RequestFacts } from "../../sources/world.ts";
import type { Metrics } from "./metrics.ts";

export function observeRequest(metrics: Metrics, facts: RequestFacts): void {
  const { method: verb, host } = facts;
  const code = facts.code === null ? "<error>" : String(facts.code);
  metrics.requests.with({ code, method: verb, host }).add();
  metrics.requestDuration.with({ verb, host }).observe(facts.seconds);
  metrics.requestSize.with({ verb, host }).observe(facts.requestBytes);
  if (facts.responseBytes !== null) metrics.responseSize.with({ verb, host }).observe(facts.responseBytes);
  metrics.rateLimiterDuration.with({ verb, host }).observe(facts.heldSeconds);
  if (facts.resent) metrics.requestRetries.with({ code, verb, host }).add();
}
