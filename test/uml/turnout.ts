// Our daemon in ipvs mode, for the oracles; what is checked on every run, and what only in long runs.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describeProgram, type ProgramCandidate } from "../kernel/conformance.ts";
import { kubeProxyProgram } from "../kernel/program.ts";

const root = join(import.meta.dirname, "..", "..");
const candidate: ProgramCandidate = {
  title: "turnout in ipvs mode",
  program: "turnout",
  mode: kubeProxyProgram(join(root, "bin", "kube-proxy"), "ipvs", { timeoutMs: 120_000, everyMs: 100 }),
  reasonToSkip: existsSync(join(root, "dist", "kube-proxy.cjs"))
    ? null
    : "not built; build with: npm run build",
};

/** Every set of settings costs a start of the daemon: most scenarios share one, and these stories cover the most. */
const soon: ProgramCandidate["takes"] = (of) =>
  "story" in of ? ["established-connections", "udp-flows"].includes(of.story) : of.scenarios.length > 5;

export function describeTurnout(when: "soon" | "later"): void {
  const takes: ProgramCandidate["takes"] = (of) => soon!(of) === (when === "soon");
  describeProgram({ ...candidate, takes, atOnce: 40 });
}
