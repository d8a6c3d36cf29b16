// Real packets and stories against our own daemon, run as users run it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describeProgram } from "./conformance.ts";
import { reasonToSkip } from "./netns.ts";
import { kubeProxyProgram } from "./program.ts";

const root = join(import.meta.dirname, "..", "..");
const isBuilt = existsSync(join(root, "dist"));

for (const name of ["nftables", "iptables", "userspace"] as const) {
  const candidate = {
    title: `turnout in ${name} mode`,
    program: "turnout",
    mode: kubeProxyProgram(join(root, "bin", "kube-proxy"), name),
    reasonToSkip: isBuilt ? reasonToSkip() : "not built; build with: npm run build",
  } as const;
  describeProgram(candidate);
}
