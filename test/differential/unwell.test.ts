// Probes of a node that is about to go, and of a proxy that cannot work: the real kube-proxy and ours, side by side.
import { describe, expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { reasonToSkip } from "../kernel/netns.ts";
import { ourProgram, reasonNotToRun } from "./program.ts";
import { type Answers, unwell } from "./unwell.ts";

const assets = findAssets("kube-proxy");
const reason = reasonToSkip() ?? (assets.found ? reasonNotToRun(ourProgram) : assets.reason);

describe("probes", () => {
  it("03/3 03/8 03/16 03/19 are answered as by kube-proxy v1.37 when something is wrong", async ({
    skip,
  }) => {
    if (reason !== null || !assets.found) return skip(reason ?? "");
    const theirs = await unwell(assets.paths["kube-proxy"]);
    const codes = (found: Answers) =>
      Object.values(found).map(({ code, weight = "" }) => `${code} ${weight}`);
    expect([codes(theirs.leaving), codes(theirs.late), codes(theirs.well)]).toEqual([
      ["503 ", "200 ", "200 2"],
      ["503 ", "503 ", "503 2"],
      // The endpoints are elsewhere now.
      ["200 ", "200 ", "503 0"],
    ]);
    expect(await unwell(ourProgram)).toEqual(theirs);
  });
});
