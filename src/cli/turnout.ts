// The tool: runs the command that was asked for.
import "./inspector-signal.ts";
import { signalReason } from "../daemon/signals.ts";
import { dispatch } from "./dispatch.ts";
import { exitWith } from "./exit.ts";
import { commandWorld } from "./io.ts";

exitWith(dispatch(process.argv.slice(2), commandWorld(), untilInterrupted));

/** The first SIGINT, SIGTERM or SIGHUP ends a command in order, the second at once. */
function untilInterrupted(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => stop.abort(signalReason(signal)));
  return stop.signal;
}
