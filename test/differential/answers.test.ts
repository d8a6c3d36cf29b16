// The pages of the real kube-proxy and ours, side by side: the same metrics with the same labels and buckets in each mode,
// and the same responses for health, mode and configuration. For ipvs mode see test/uml/ipvs-answers.test.ts.
import { describe, expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { reasonToSkip } from "../kernel/netns.ts";
import { answersOf, flagsOf } from "./answers.ts";
import { ourProgram, reasonNotToRun } from "./program.ts";

const assets = findAssets("kube-proxy");
const reason = reasonToSkip() ?? (assets.found ? reasonNotToRun(ourProgram) : assets.reason);

describe("/flagz", () => {
  it("03/30 as an object has the flags, values and headers of kube-proxy v1.37", async ({ skip }) => {
    if (reason !== null || !assets.found) return skip(reason ?? "");
    expect(await flagsOf(ourProgram)).toEqual(await flagsOf(assets.paths["kube-proxy"]));
  });
});

describe("03/33 answers", () => {
  it.for(["nftables", "iptables"] as const)(
    "of mode %s are those of kube-proxy v1.37",
    async (mode, { skip }) => {
      if (reason !== null || !assets.found) return skip(reason ?? "");
      const theirs = await answersOf(assets.paths["kube-proxy"], mode);
      const ours = await answersOf(ourProgram, mode);
      expect(ours).toEqual(theirs);
      const sample = "kubeproxy_network_programming_duration_seconds";
      expect(ours.series.some((line) => line.startsWith(sample))).toBe(true);
    },
  );
});
