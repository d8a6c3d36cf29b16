// Logs Problems of objects: each one once, when it appears.
import { type Problem, printProblem } from "../model/problem.ts";
import type { Log } from "./log/log.ts";

/** New troubles of one Snapshot beyond this are counted, not listed; `turnout render` shows them all. */
const shownAtOnce = 20;

/** Call it with all Problems known now, when they changed. */
export function openProblemLog(log: Log): (problems: readonly Problem[]) => void {
  let logged = new Set<string>();
  return (problems) => {
    const fresh = problems.filter((problem) => !logged.has(printProblem(problem)));
    logged = new Set(problems.map(printProblem));
    for (const { object, field, message } of fresh.slice(0, shownAtOnce)) {
      log.error(new Error(message), "Object is not as expected", {
        object,
        ...(field === "" ? {} : { field }),
      });
    }
    if (fresh.length > shownAtOnce)
      log.error(new Error(`${fresh.length - shownAtOnce} more`), "Objects are not as expected");
  };
}
