// Every Problem known now: of objects, and of Services whose requests conflict with others or cannot be served.
import type { Family } from "../model/address.ts";
import { type Problem, printProblem } from "../model/problem.ts";
import type { LoopObserver } from "../sync/loop.ts";

export type KnownProblems = Pick<LoopObserver, "arrived" | "conflicts"> & {
  /** Services that take an address of this node or of the API server, in one family. */
  readonly intercepts: (family: Family, problems: readonly Problem[]) => void;
  readonly all: () => readonly Problem[];
};

/** `onChange` is called with all of them whenever they changed. */
export function keepProblems(onChange: (all: readonly Problem[]) => void): KnownProblems {
  let ofObjects: readonly Problem[] = [];
  const conflicts = new Map<Family, readonly Problem[]>();
  const intercepts = new Map<Family, readonly Problem[]>();
  let all: readonly Problem[] = [];
  const gather = () => {
    all = distinct([...ofObjects, ...[...conflicts.values(), ...intercepts.values()].flat()]);
    onChange(all);
  };
  return {
    arrived({ problems }) {
      if (problems === ofObjects) return;
      ofObjects = problems;
      gather();
    },
    conflicts(family, problems) {
      conflicts.set(family, problems);
      gather();
    },
    intercepts(family, problems) {
      intercepts.set(family, problems);
      gather();
    },
    all: () => all,
  };
}

/** A NodePort is requested in both families, but is one Problem. */
function distinct(problems: readonly Problem[]): readonly Problem[] {
  return [...new Map(problems.map((problem) => [printProblem(problem), problem])).values()];
}
