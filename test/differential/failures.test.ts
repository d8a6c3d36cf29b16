// Syncs that the kernel refuses, in the metrics of the real kube-proxy and ours: the same series move at the same moments.
import { describe, expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { reasonToSkip } from "../kernel/netns.ts";
import { heldChain, refusedChanges } from "./failures.ts";
import { ourProgram, reasonNotToRun } from "./program.ts";

const assets = findAssets("kube-proxy");
const reason = reasonToSkip() ?? (assets.found ? reasonNotToRun(ourProgram) : assets.reason);

const ipv4 = (name: string) => `kubeproxy_sync_proxy_rules_nftables_${name}_failures_total{ip_family="IPv4"}`;
const metric = (name: string) => `kubeproxy_sync_proxy_rules_${name}`;

describe("failures of nftables mode", () => {
  it("03/36 are counted for their family while changes are refused, and no longer afterwards", async ({
    skip,
  }) => {
    if (reason !== null || !assets.found) return skip(reason ?? "");
    const theirs = await refusedChanges(assets.paths["kube-proxy"]);
    expect(theirs).toEqual({
      failing: {
        failures: [ipv4("sync")],
        moved: [metric("nftables_sync_failures_total"), metric("duration_seconds_count")],
      },
      // The latency of what was refused is never observed.
      after: {
        failures: [ipv4("sync")],
        moved: [metric("duration_seconds_count"), metric("last_timestamp_seconds")],
      },
    });
    expect(await refusedChanges(ourProgram)).toEqual(theirs);
  });

  it("of the clean-up are no failures of the Sync, in kube-proxy", async ({ skip }) => {
    if (reason !== null || !assets.found) return skip(reason ?? "");
    expect(await heldChain(assets.paths["kube-proxy"])).toEqual({
      failures: [ipv4("cleanup")],
      moved: [
        metric("nftables_cleanup_failures_total"),
        metric("duration_seconds_count"),
        metric("last_timestamp_seconds"),
      ],
    });
  });
});
