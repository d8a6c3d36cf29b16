// Real packets and stories against our own daemon in ipvs mode, in a kernel that has IPVS.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describeConformance, describeStories } from "../kernel/conformance.ts";
import { kubeProxyProgram } from "../kernel/program.ts";

const root = join(import.meta.dirname, "..", "..");
const candidate = {
  title: "turnout in ipvs mode",
  program: "turnout",
  mode: kubeProxyProgram(join(root, "bin", "kube-proxy"), "ipvs", { patienceMs: 120_000, everyMs: 100 }),
  reasonToSkip: existsSync(join(root, "dist", "kube-proxy.cjs"))
    ? null
    : "not built; build with: npm run build",
} as const;

describeConformance({ ...candidate, atOnce: 40 });
describeStories(candidate);
