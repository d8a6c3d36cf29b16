// `rest_client_*`: what requests to the API server cost.
import type { RequestFacts } from "../../sources/world.ts";
import type { Metrics } from "./metrics.ts";

export function observeRequest(metrics: Metrics, facts: RequestFacts): void {
  const { method: verb, host, cost } = facts;
  const code = facts.code === null ? "<error>" : String(facts.code);
  metrics.requests.with({ code, method: verb, host }).add();
  if (facts.resent) metrics.requestRetries.with({ code, verb, host }).add();
  // Watches are counted and not measured, as by the Go client.
  if (cost === null) return;
  metrics.requestDuration.with({ verb, host }).observe(cost.seconds);
  metrics.requestSize.with({ verb, host }).observe(cost.requestBytes);
  if (cost.responseBytes !== null) metrics.responseSize.with({ verb, host }).observe(cost.responseBytes);
  if (cost.heldSeconds !== null) metrics.rateLimiterDuration.with({ verb, host }).observe(cost.heldSeconds);
}
