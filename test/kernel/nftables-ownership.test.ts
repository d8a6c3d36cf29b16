// A table with an owner process: no other can flush it, a successor adopts it, and a clean exit releases it.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NftablesHost } from "../../src/host/nftables/host.ts";
import type { ServicePort } from "../../src/model/snapshot.ts";
import { compile } from "../../src/modes/nftables/compile.ts";
import { type NftablesDriver, openNftables } from "../../src/modes/nftables/host/driver.ts";
import { countOperations } from "../../src/plan/nftables/diff.ts";
import { unfold } from "../../src/plan/nftables/plan.ts";
import { takeOver } from "../../src/plan/nftables/takeover.ts";
import type { FoundTable } from "../../src/plan/nftables/types.ts";
import { endpoint, routed, servicePort } from "../support/routed.ts";
import { createNamespace, isRoot, type Namespace } from "./netns.ts";

describe.skipIf(!isRoot)("an owned table", () => {
  let here: Namespace;
  const open: { close(): Promise<void> }[] = [];
  const { signal } = new AbortController();
  const want = unfold(compile(null, routed([sticky(), plain()])));

  beforeEach(() => {
    here = createNamespace();
  });

  afterEach(async () => {
    for (const each of open.splice(0)) await each.close();
    here.remove();
  });

  async function driver(owned: boolean): Promise<NftablesDriver> {
    const made = await openNftables({ family: "ip", netns: here.path, owned });
    open.push(made);
    return made;
  }

  async function host(owned: boolean): Promise<NftablesHost> {
    return NftablesHost.open({ family: "ip", netns: here.path, owned });
  }

  const sync = (at: NftablesDriver) => at.sync(routed([sticky(), plain()]), signal);
  const listing = () => here.run("nft", "list", "ruleset");
  const found = async (): Promise<FoundTable | null> => {
    const reader = await host(false);
    try {
      return await reader.find(() => want);
    } finally {
      await reader.close();
    }
  };

  it("is possible here, or this kernel is recognised as too old", async () => {
    expect((await driver(true)).report().tableOwned).toBe(true);
    expect(listing()).toBe("");
  });

  it("survives a foreign flush and refuses foreign changes", async () => {
    await sync(await driver(true));
    const before = here.run("nft", "list", "table", "ip", "kube-proxy");
    here.run("nft", "flush", "ruleset");
    expect(here.run("nft", "list", "table", "ip", "kube-proxy")).toBe(before);
    expect(() => here.run("nft", "add", "chain", "ip", "kube-proxy", "foreign")).toThrow("not permitted");
  });

  it("cannot be changed by another process of ours, which reports that", async () => {
    await sync(await driver(true));
    await expect(sync(await driver(true))).rejects.toThrow(
      /Cannot change table ip kube-proxy: it belongs to another process \(netlink port \d+\)/,
    );
    await expect(sync(await driver(false))).rejects.toThrow("it belongs to another process");
  });

  it("11/17 is adopted by a successor, which writes nothing but its name on it", async () => {
    const first = await host(true);
    await first.apply(takeOver(null, want, true).patch);
    await first.close();
    expect((await found())!.ownership).toBe("orphan");
    here.run("nft", "add", "element", "ip", "kube-proxy", affinitySet(), "{ 10.180.0.2 }");
    const second = await driver(true);
    expect(await sync(second)).toMatchObject({ readBack: true, operations: 1 });
    here.run("nft", "flush", "ruleset");
    expect(await second.verify(signal)).toEqual({ differences: 0 });
    expect(listing()).toContain("10.180.0.2 expires");
  });

  it("is made plain at an orderly end, and back again, and clients stay where they are", async () => {
    const first = await driver(true);
    await sync(first);
    await first.close();
    expect(await found()).toMatchObject({ ownership: "plain" });
    here.run("nft", "add", "element", "ip", "kube-proxy", affinitySet(), "{ 10.180.0.2 expires 100s }");
    const second = await driver(true);
    const taken = await sync(second);
    expect(taken.operations).toBeGreaterThan(20);
    // Less than what was left, and far from the whole time-out.
    expect(listing()).toMatch(/10\.180\.0\.2 expires 1m\d+s/);
    await second.close();
    const handedBack = (await found())!;
    expect(handedBack.ownership).toBe("plain");
    expect([...handedBack.remembered.values()]).toMatchObject([[{ address: "10.180.0.2" }]]);
    expect(countOperations(takeOver(handedBack, want, false).patch)).toBe(0);
    expect(here.run("nft", "add", "chain", "ip", "kube-proxy", "foreign")).toBe("");
  });

  it("of a dead process becomes plain when ours shall be plain, and clients stay", async () => {
    const first = await host(true);
    await first.apply(takeOver(null, want, true).patch);
    await first.close();
    here.run("nft", "add", "element", "ip", "kube-proxy", affinitySet(), "{ 10.180.0.2 }");
    const second = await driver(false);
    await sync(second);
    expect((await found())!.ownership).toBe("plain");
    expect(listing()).toContain("10.180.0.2 expires");
    expect(await second.verify(signal)).toEqual({ differences: 0 });
  });

  function affinitySet(): string {
    return [...want.sets.keys()].find((name) => name.startsWith("affinity-"))!;
  }
});

function sticky(): ServicePort {
  return servicePort("shop/sticky", {
    affinity: { seconds: 10_800 },
    endpoints: [endpoint("10.180.0.1:8080"), endpoint("10.180.1.1:8080")],
  });
}

function plain(): ServicePort {
  return servicePort("shop/plain", { clusterIP: "172.30.0.11", endpoints: [endpoint("10.180.0.1:8080")] });
}
