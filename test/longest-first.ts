// The order of test files: those that take longest come first, so that none is left to run alone at the end.
import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/** Files that take half a minute or more on two cores, the longest first. */
const longest: readonly string[] = [
  "uml/turnout",
  "kernel/turnout",
  "uml/ipvs-traffic",
  "cluster/cluster",
  "uml/ipvs-life",
  "kernel/daemon-soak",
  "kernel/playground",
  "kernel/iptables-legacy",
  "kernel/missing-features",
  "kernel/daemon-faults",
  "kernel/kubectl",
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rank(a.moduleId) - rank(b.moduleId));
  }
}

function rank(file: string): number {
  const at = longest.findIndex((name) => file.endsWith(`/test/${name}.test.ts`));
  return at === -1 ? longest.length : at;
}
