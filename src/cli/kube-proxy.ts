// The drop-in executable: kube-proxy's flags and nothing else.
import { constants } from "node:os";
import { signalReason } from "../daemon/signals.ts";
import { runCommand } from "./commands/kube-proxy.ts";
import { exitWith } from "./exit.ts";
import { commandWorld } from "./io.ts";

// As kube-proxy, it is ended by the signal itself and leaves the rules in place; before that it is logged. The first
// process of a container exits instead: the kernel does not let it be ended by a signal.
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    stop.abort(signalReason(signal));
    if (process.pid === 1) process.exit(128 + constants.signals[signal]);
    process.kill(process.pid, signal);
  });
}
exitWith(runCommand(process.argv.slice(2), commandWorld(), stop.signal));
