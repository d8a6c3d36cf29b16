// Tells the log when a Source has lost touch with the cluster, why, and when it is back; short hiccups stay out of it.
import type { Source } from "../sources/source.ts";
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
  const look = () => {
    for (const [resource, { watchSince, lastError }] of Object.entries(source.status().resources)) {
      const before = told.get(resource);
      if (watchSince !== null) {
        if (told.delete(resource)) log.info("Hears from the API server again", { resource });
      } else if (lastError !== null && isNews(before, lastError.message, clock.steady())) {
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
