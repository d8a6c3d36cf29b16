// Logs when requests to the API server fail, why, and when they succeed again; expected re-lists are details.
import type { ResourceStatus, Source } from "../sources/source.ts";
import type { Clock } from "./clock.ts";
import type { Log } from "./log/log.ts";

const lookEveryMs = 1_000;

/** The same trouble is told again after this. */
const repeatMs = 600_000;

/** Looks once a second until the signal aborts. */
export function followSource(
  source: Pick<Source, "status">,
  clock: Clock,
  log: Log,
  signal: AbortSignal,
): void {
  const told = new Map<string, { readonly message: string; readonly at: number }>();
  const restarts = new Map<string, ResourceStatus["lastRestart"]>();
  const look = () => {
    for (const [resource, status] of Object.entries(source.status().resources)) {
      const { watchSince, lastError, lastRestart, failing } = status;
      const before = told.get(resource);
      if (lastRestart !== (restarts.get(resource) ?? null)) {
        restarts.set(resource, lastRestart);
        log.v(2, "Restarted the watch", { resource, reason: lastRestart?.reason ?? "" });
      }
      if (watchSince !== null) {
        if (told.delete(resource)) log.info("Hears from the API server again", { resource });
      } else if (failing && lastError !== null && isNews(before, lastError.message, clock.steady())) {
        told.set(resource, { message: lastError.message, at: clock.steady() });
        log.error(new Error(lastError.message), "Cannot follow the cluster; trying on", { resource });
      }
    }
    cancel = clock.after(lookEveryMs, look);
  };
  let cancel = clock.after(lookEveryMs, look);
  signal.addEventListener("abort", () => cancel(), { once: true });
}

function isNews(
  before: { readonly message: string; readonly at: number } | undefined,
  message: string,
  now: number,
): boolean {
  return before === undefined || before.message !== message || now - before.at >= repeatMs;
}
