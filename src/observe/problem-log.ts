// Tells the log what is wrong with objects: each trouble once, when it appears, and never a flood.
import type { Problem } from "../model/problem.ts";
import type { Log } from "./log/log.ts";

/** New troubles of one Snapshot beyond this are counted, not listed; `turnout render` shows them all. */
const shownAtOnce = 20;

/** Call it with all Problems known now. */
export function openProblemLog(log: Log): (problems: readonly Problem[]) => void {
  let known: readonly Problem[] = [];
  let told = new Set<string>();
  return (problems) => {
    if (problems === known) return;
    known = problems;
    const fresh = problems.filter((problem) => !told.has(textOf(problem)));
    told = new Set(problems.map(textOf));
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

function textOf({ object, field, message }: Problem): string {
  return `${object} ${field} ${message}`;
}
