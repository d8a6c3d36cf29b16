// Real packets and stories against our own daemon, run as users run it; one file for each mode, so that they run in parallel.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Mode } from "../reference/proxy.ts";
import { describeProgram } from "./conformance.ts";
import { reasonToSkip } from "./netns.ts";
import { kubeProxyProgram } from "./program.ts";

const root = join(import.meta.dirname, "..", "..");
const isBuilt = existsSync(join(root, "dist"));

export function describeTurnout(name: Mode): void {
  describeProgram({
    title: `turnout in ${name} mode`,
    program: "turnout",
    mode: kubeProxyProgram(join(root, "bin", "kube-proxy"), name),
    reasonToSkip: isBuilt ? reasonToSkip() : "not built; build with: npm run build",
  });
}
