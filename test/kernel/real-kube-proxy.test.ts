// Real packets against the real kube-proxy: the truth tables are true, whatever our own code does.
import { findAssets } from "../assets.ts";
import { describeConformance } from "./conformance.ts";
import { reasonToSkip } from "./netns.ts";
import { realKubeProxy } from "./real-kube-proxy.ts";

const assets = findAssets("kube-proxy");

for (const name of ["nftables", "iptables"] as const) {
  describeConformance({
    title: `the real kube-proxy in ${name} mode`,
    program: "kube-proxy",
    mode: realKubeProxy(assets.found ? assets.paths["kube-proxy"] : "", name),
    reasonToSkip: assets.found ? reasonToSkip() : assets.reason,
  });
}
