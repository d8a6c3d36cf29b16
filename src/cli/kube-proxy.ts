// The drop-in executable: kube-proxy's flags and nothing else.
import { constants } from "node:os";
import { runCommand } from "./command.ts";
import { exitWith } from "./exit.ts";
import { commandWorld } from "./world.ts";

// No signal handlers, as in kube-proxy: a signal ends the process at once and leaves the rules in place. The first
// process of a container is an exception: the kernel lets only signals with a handler through to it.
if (process.pid === 1) {
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
}
exitWith(runCommand(process.argv.slice(2), commandWorld(), new AbortController().signal));
