// The order of test files: those that take longest come first, so that none is left to run alone at the end.
import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/** Files that take half a minute or more on two cores, the longest first. */
const longest: readonly string[] = [
  "kernel/image",
  "uml/ipvs-life",
  "uml/ipvs-traffic",
  "uml/turnout",
  "kernel/playground",
  "kernel/nftables-plan",
  "kernel/turnout-iptables",
  "kernel/iptables-legacy",
  "kernel/turnout-nftables",
  "kernel/turnout-userspace",
  "cluster/cluster",
  "kernel/flow-classes",
  "uml/ipvs-counts",
  "uml/traffic-limits",
  "kernel/missing-features",
  "kernel/kubectl",
  "kernel/inspect",
  "kernel/daemon-life",
  "kernel/daemon-faults",
  "kernel/userspace",
  "kernel/daemon-modes",
  "kernel/explain",
  "kernel/kubectl-plugin",
  "kernel/playground-end",
  "kernel/printed-commands",
  "kernel/traffic-counts",
  "kernel/containers",
  "differential/differential",
  "kernel/many-flows",
  "kernel/daemon-soak",
  "browser/page",
  "uml/ipvs-host",
  "kernel/daemon-config",
  "kernel/iptables-reference",
  "kernel/plans",
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
