// Real packets and stories against the real kube-proxy in ipvs mode: the truth tables are true, whatever our code does.
import { findAssets } from "../assets.ts";
import { describeProgram } from "../kernel/conformance.ts";
import { kubeProxyProgram } from "../kernel/program.ts";

const assets = findAssets("kube-proxy");

// Its first sync takes minutes here: hundreds of processes on a kernel that is itself a process.
const pace = { timeoutMs: 900_000, everyMs: 1000 };

const candidate = {
  title: "the real kube-proxy in ipvs mode",
  program: "kube-proxy",
  mode: kubeProxyProgram(assets.found ? assets.paths["kube-proxy"] : "", "ipvs", pace),
  reasonToSkip: assets.found ? null : assets.reason,
} as const;

describeProgram({ ...candidate, atOnce: 40 });
