// Side by side with the real kube-proxy: for generated clusters both leave the same in the kernel.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { nodeName } from "../places.ts";
import { ipvsCorpusFolder, recordIpvs } from "../reference/corpus.ts";
import { differences } from "../reference/differences.ts";
import { generateIpvsCase, type IpvsCase } from "../reference/ipvs-cases.ts";
import { unexplained } from "../reference/ipvs-deviations.ts";
import { type Rules, recordRules } from "../reference/record.ts";

/** `TURNOUT_SEEDS`: which states; `TURNOUT_RECORD=1`: theirs go into the corpus, nothing is compared. */
const { TURNOUT_SEEDS = "1001-1008", TURNOUT_RECORD } = process.env;
const seeds = rangeOf(TURNOUT_SEEDS);
const assets = findAssets("kube-proxy");
const real = assets.found ? assets.paths["kube-proxy"] : "";
const ours = join(import.meta.dirname, "..", "..", "bin", "kube-proxy");
const isBuilt = existsSync(join(import.meta.dirname, "..", "..", "dist", "kube-proxy.cjs"));
const reason = !assets.found ? assets.reason : isBuilt ? null : "not built; build with: npm run build";

describe("beside the real kube-proxy in ipvs mode", () => {
  const writable = "/run/recorded";
  beforeAll(() => {
    if (TURNOUT_RECORD === undefined) return;
    mkdirSync(writable);
    execFileSync("mount", ["-t", "hostfs", "none", writable, "-o", ipvsCorpusFolder]);
  });
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));

  it.each(seeds)("seed %s", async (seed) => {
    const state = generateIpvsCase(seed);
    const theirs = await recorded(real, state);
    expect(theirs["ipset save"]).toContain("create KUBE-6-CLUSTER-IP ");
    expect(theirs["ipvsadm -Sn"]).toContain("-A ");
    const isForCorpus = TURNOUT_RECORD !== undefined;
    if (isForCorpus) recordIpvs(writable, { ...state, rules: theirs });
    const own = isForCorpus ? theirs : await recorded(ours, state);
    expect(unexplained(differences(theirs, own), state)).toEqual([]);
  });
});

function recorded(program: string, { configuration, objects }: IpvsCase): Promise<Rules> {
  const pace = { timeoutMs: 900_000, everyMs: 500 };
  return recordRules(program, configuration, nodeName, objects, pace);
}

function rangeOf(text: string): number[] {
  const [first, last] = text.split("-").map(Number) as [number, number?];
  return Array.from({ length: (last ?? first) - first + 1 }, (_, i) => first + i);
}
