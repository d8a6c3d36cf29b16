// The proxy health server: `/healthz` and `/livez`, nothing else.
import type { Clock, Moment } from "../clock.ts";
import { momentOf } from "../clock.ts";
import type { Verdict } from "../health.ts";
import { healthzAnswer, livezAnswer } from "../health-answers.ts";
import type { Counter, Vector } from "../metrics/instruments.ts";
import { notFound, pathOf, type Respond } from "./http.ts";

export type HealthView = {
  readonly verdict: (now: Moment) => Verdict;
  /** No Node object: not eligible. */
  readonly nodeEligible: () => boolean;
};

export type HealthCounters = {
  readonly healthz: Vector<"code", Counter>;
  readonly livez: Vector<"code", Counter>;
};

export function healthPages(health: HealthView, counters: HealthCounters, clock: Clock): Respond {
  return (request) => {
    const path = pathOf(request);
    if (path !== "/healthz" && path !== "/livez") return notFound;
    const now = momentOf(clock);
    const verdict = health.verdict(now);
    const answer =
      path === "/healthz" ? healthzAnswer(verdict, now, health.nodeEligible()) : livezAnswer(verdict, now);
    counters[path === "/healthz" ? "healthz" : "livez"].with({ code: String(answer.status) }).add();
    return answer;
  };
}
