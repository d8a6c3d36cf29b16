// The drop-in executable: kube-proxy's flags and nothing else.
import { runCommand } from "./command.ts";
import { commandWorld, exitWith } from "./world.ts";

// No signal handlers, as in kube-proxy: a signal ends the process at once and leaves the rules in place.
exitWith(runCommand(process.argv.slice(2), commandWorld(), new AbortController().signal));
