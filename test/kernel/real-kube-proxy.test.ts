// Real packets against the real kube-proxy: the truth tables are true, whatever our own code does.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { groupsFor, judgeGroup, type Verdict } from "./judge.ts";
import { reasonToSkip } from "./netns.ts";
import { realKubeProxy } from "./real-kube-proxy.ts";
import { createWorld, type World } from "./world.ts";

const assets = findAssets("kube-proxy");
const reason = assets.found ? reasonToSkip() : assets.reason;

describe.each(["nftables", "iptables"] as const)("the real kube-proxy in %s mode", (name) => {
  let world: World;
  beforeAll(async () => {
    if (reason === null) world = await createWorld();
  });
  afterAll(() => world?.close());

  for (const group of groupsFor(name)) {
    let verdicts: Promise<Verdict[]> | null = null;
    for (const { name: scenario, packets } of group.scenarios) {
      const rows = [...new Set(packets.flatMap(({ rows }) => rows))].join(" ");
      it(`${scenario} (${rows})`, async ({ skip }) => {
        if (reason !== null || !assets.found) return skip(reason ?? "");
        verdicts ??= judgeGroup(world, realKubeProxy(assets.paths["kube-proxy"], name), group);
        const own = (await verdicts).filter(({ packet }) => packet.scenario === scenario);
        expect(
          own.flatMap(({ packet, problem }) => (problem === null ? [] : `${packet.line} ${problem}`)),
        ).toEqual([]);
      });
    }
  }
});
