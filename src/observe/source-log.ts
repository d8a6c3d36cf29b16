// Logs when requests to the API server fail, why, and when they succeed again; expected re-lists are details.
import type { ResourceStatus, Source } from "../sources/source.ts";
import type { Clock } from "./clock.ts";
import type { Log } from "./log/log.ts";

const pollEveryMs = 1_000;

/** The same failure is logged again after this. */
const repeatMs = 600_000;

/** Polls once a second until the signal aborts. */
export function followSource(
  source: Pick<Source, "status">,
  clock: Clock,
  log: Log,
  signal: AbortSignal,
): void {
  const logged = new Map<string, { readonly message: string; readonly at: number }>();
  const restarts = new Map<string, ResourceStatus["lastRestart"]>();
  const poll = () => {
    for (const [resource, status] of Object.entries(source.status().resources)) {
      const { watchSince, lastError, lastRestart, failing } = status;
      const before = logged.get(resource);
      if (lastRestart !== (restarts.get(resource) ?? null)) {
        restarts.set(resource, lastRestart);
        log.v(2, "Restarted the watch", { resource, reason: lastRestart?.reason ?? "" });
      }
      if (watchSince !== null) {
        if (logged.delete(resource)) log.info("API watch restored", { resource });
      } else if (failing && lastError !== null && mustLog(before, lastError.message, clock.steady())) {
        logged.set(resource, { message: lastError.message, at: clock.steady() });
        log.error(new Error(lastError.message), "Cannot watch the API server; retrying", { resource });
      }
    }
    cancel = clock.after(pollEveryMs, poll);
  };
  let cancel = clock.after(pollEveryMs, poll);
  signal.addEventListener("abort", () => cancel(), { once: true });
}

function mustLog(
  before: { readonly message: string; readonly at: number } | undefined,
  message: string,
  now: number,
): boolean {
  return before === undefined || before.message !== message || now - before.at >= repeatMs;
}
