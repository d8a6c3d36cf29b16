// Tells V8 of a daemon to compile for speed later: the loops of the first load would be compiled once more at the first change.
import { setFlagsFromString } from "node:v8";

/** Not for commands that look at a cluster once: to them it costs a tenth of a second and more. */
export function delayOptimization(): void {
  // Only the V8 of Node 20 knows this flag; on the command line it would keep later ones from starting.
  if (process.versions.node.startsWith("20.")) setFlagsFromString("--interrupt-budget=1500000");
}
