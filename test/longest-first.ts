// The order of test files: those that take longest come first, so that none is left to run alone at the end.
import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/** Files that take half a minute or more on two cores, the longest first. */
const longest: readonly string[] = [
  "kernel/image",
  "uml/ipvs-traffic",
  "uml/turnout",
  "uml/ipvs-life",
  "kernel/iptables-legacy",
  "cluster/cluster",
  "kernel/daemon-modes",
  "kernel/playground",
  "kernel/turnout-nftables",
  "kernel/turnout-iptables",
  "kernel/turnout-userspace",
  "kernel/missing-features",
  "kernel/playground-end",
  "kernel/daemon-life",
  "kernel/daemon-faults",
  "kernel/explain",
  "kernel/daemon-soak",
  "differential/differential",
  "kernel/inspect",
  "kernel/nftables-plan",
  "kernel/kubectl",
  "kernel/kubectl-plugin",
  "differential/figures",
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
