// Real packets against the real kube-proxy: the truth tables are true, whatever our own code does.
import { findAssets } from "../assets.ts";
import { describeProgram } from "./conformance.ts";
import { reasonToSkip } from "./netns.ts";
import { kubeProxyProgram } from "./program.ts";

const assets = findAssets("kube-proxy");
const reasonToPutOff =
  process.env.TURNOUT_LONG === undefined ? "takes two minutes; run with: TURNOUT_LONG=1 npm test" : null;

for (const name of ["nftables", "iptables"] as const) {
  const candidate = {
    title: `the real kube-proxy in ${name} mode`,
    program: "kube-proxy",
    mode: kubeProxyProgram(assets.found ? assets.paths["kube-proxy"] : "", name),
    reasonToSkip: assets.found ? (reasonToSkip() ?? reasonToPutOff) : assets.reason,
  } as const;
  describeProgram(candidate);
}
