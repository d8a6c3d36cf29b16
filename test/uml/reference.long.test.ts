// Side by side with the real kube-proxy: for generated clusters both leave the same in the kernel.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { nodeName } from "../places.ts";
import { generateCase } from "../reference/cases.ts";
import { type Rules, recordRules } from "../reference/record.ts";
import { differences } from "./differences.ts";

const assets = findAssets("kube-proxy");
const real = assets.found ? assets.paths["kube-proxy"] : "";
const ours = join(import.meta.dirname, "..", "..", "bin", "kube-proxy");
const isBuilt = existsSync(join(import.meta.dirname, "..", "..", "dist", "kube-proxy.cjs"));
const reason = !assets.found ? assets.reason : isBuilt ? null : "not built; build with: npm run build";

describe("beside the real kube-proxy in ipvs mode", () => {
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));

  it.each(Array.from({ length: 8 }, (_, i) => i + 1))("seed %s", async (seed) => {
    const { configuration, objects } = generateCase(seed, "iptables");
    const record = (program: string): Promise<Rules> =>
      recordRules(program, { ...configuration, mode: "ipvs" }, nodeName, objects, {
        patienceMs: 900_000,
        everyMs: 500,
      });
    const [theirs, own] = [await record(real), await record(ours)];
    expect(theirs["ipset save"]).toContain("create KUBE-6-CLUSTER-IP ");
    expect(theirs["ipvsadm -Sn"]).toContain("-A ");
    expect(differences(theirs, own)).toEqual([]);
  });
});
