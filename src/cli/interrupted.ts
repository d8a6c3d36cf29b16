// Stops a command gracefully when the user interrupts it.
import { signalReason } from "../daemon/signals.ts";

/** The first SIGINT, SIGTERM or SIGHUP stops a command gracefully, the second immediately. */
export function untilInterrupted(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => stop.abort(signalReason(signal)));
  return stop.signal;
}
