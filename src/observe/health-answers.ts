// What `/healthz`, `/livez` and the health check node ports answer, byte for byte.

import { type Moment, timeText } from "./clock.ts";
import { familyLabels } from "./family.ts";
import type { Verdict } from "./health.ts";
import { goQuote } from "./log/quote.ts";

export type HealthAnswer = {
  readonly status: 200 | 503;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

const headers = { "Content-Type": "application/json", "X-Content-Type-Options": "nosniff" } as const;

/** Go's zero time, shown when nothing was ever updated. */
const never = "0001-01-01T00:00:00Z";

const longestMessage = 300;

/** `/healthz`: the proxy is healthy, and the node may take load-balancer traffic. */
export function healthzAnswer(verdict: Verdict, now: Moment, nodeEligible: boolean): HealthAnswer {
  const status = verdict.healthy && nodeEligible ? 200 : 503;
  return { status, headers, body: body(verdict, now, status, "healthy", { nodeEligible }) };
}

/** `/livez`: the proxy alone. */
export function livezAnswer(verdict: Verdict, now: Moment): HealthAnswer {
  const status = verdict.live ? 200 : 503;
  return { status, headers, body: body(verdict, now, status, "live", {}) };
}

function body(verdict: Verdict, now: Moment, status: number, by: "healthy" | "live", extra: object): string {
  const newest = verdict.newest === null ? never : timeText(verdict.newest.wall);
  const current = timeText(now.wall);
  const listed = verdict.families.map((one) => [
    familyLabels[one.family],
    { lastUpdated: timeText(one.updated.wall), healthy: one[by] },
  ]);
  return JSON.stringify({
    // A healthy proxy reports the current time, as kube-proxy did when it synced on a timer: probes compare it with the clock.
    lastUpdated: status === 200 ? current : newest,
    currentTime: current,
    ...extra,
    healthy: verdict[by],
    ...(listed.length === 0 ? {} : { status: Object.fromEntries(listed) }),
    ...reasons(verdict),
  });
}

/** Our addition; absent without reasons, so that a healthy answer is upstream's to the byte. */
function reasons(verdict: Verdict): object {
  if (verdict.reasons.length === 0) return {};
  return {
    reasons: verdict.reasons.map(({ kind, family, since, message }) => ({
      kind,
      ...(family === null ? {} : { family: familyLabels[family] }),
      since: timeText(since.wall),
      message: message.length > longestMessage ? `${message.slice(0, longestMessage)}…` : message,
    })),
  };
}

/** A health check node port: whether this node has endpoints for the Service, and how many. */
export function serviceAnswer(
  namespace: string,
  name: string,
  localEndpoints: number,
  healthy: boolean,
): HealthAnswer {
  return {
    status: localEndpoints !== 0 && healthy ? 200 : 503,
    headers: { ...headers, "X-Load-Balancing-Endpoint-Weight": String(localEndpoints) },
    body: [
      "{",
      '\t"service": {',
      `\t\t"namespace": ${goQuote(namespace)},`,
      `\t\t"name": ${goQuote(name)}`,
      "\t},",
      `\t"localEndpoints": ${localEndpoints},`,
      `\t"serviceProxyHealthy": ${healthy}`,
      "}",
    ].join("\n"),
  };
}
