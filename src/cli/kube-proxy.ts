// The executable kube-proxy: accepts kube-proxy's flags only; Turnout's own settings come from the environment.
import { constants } from "node:os";
import { signalReason } from "../daemon/signals.ts";
import { runDropIn } from "./commands/kube-proxy.ts";
import { exitWith } from "./exit.ts";
import { commandWorld } from "./io.ts";

// Like kube-proxy, it logs the signal, is terminated by it and leaves the rules in place. As PID 1 of a container it
// exits instead, because the kernel ignores the signal's default action there.
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    stop.abort(signalReason(signal));
    if (process.pid === 1) process.exit(128 + constants.signals[signal]);
    process.kill(process.pid, signal);
  });
}
exitWith(runDropIn(process.argv.slice(2), commandWorld(), stop.signal));
