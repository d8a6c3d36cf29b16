// The metrics of a kube-proxy, the real one or ours, for Syncs that the kernel refuses: which series change, and when.
import { setTimeout as sleep } from "node:timers/promises";
import { changedShopSlice, shop, shopSlice } from "../kernel/shop.ts";
import { eventually, sampleOf } from "../kernel/site.ts";
import { service } from "../objects.ts";
import type { KubeObject } from "../reference/objects.ts";
import { takeTable } from "./owner.ts";
import { withProxy } from "./watched.ts";

const prefix = "kubeproxy_sync_proxy_rules_";
const syncFailures = `${prefix}nftables_sync_failures_total`;
const cleanupFailures = `${prefix}nftables_cleanup_failures_total`;
const lastTimestamp = `${prefix}last_timestamp_seconds`;
const lastQueued = `${prefix}last_queued_timestamp_seconds`;
const syncs = `${prefix}duration_seconds_count`;
/** What moves with Syncs. */
const moving = [
  syncFailures,
  cleanupFailures,
  syncs,
  lastTimestamp,
  "kubeproxy_network_programming_duration_seconds_count",
];

/** The change of the metrics between two moments. */
export type Movement = {
  /** Every series of failures that is there in the end. */
  readonly failures: readonly string[];
  /** Of IPv4. */
  readonly moved: readonly string[];
};

/** Another program owns the IPv4 table for a while: changes fail, and another change follows. */
export function refusedChanges(program: string): Promise<{ failing: Movement; after: Movement }> {
  return withProxy(program, { mode: "nftables" }, shop(), async (proxy, { netns }, metrics) => {
    const start = await metrics();
    const thief = await takeTable(netns);
    let failing: string;
    try {
      proxy.api.put(changedShopSlice(new Date()));
      await eventually(async () => isDrained(start, await metrics()), "a failure");
      // When a further one is counted, the Sync of the first change is over.
      const counted = ipv4Of(await metrics(), syncFailures);
      proxy.api.put(shopSlice("web-1", { endpoints: [] }));
      await eventually(async () => ipv4Of(await metrics(), syncFailures) > counted, "a further failure");
      failing = await settled(metrics);
    } finally {
      await thief.end();
    }
    proxy.api.put(shopSlice());
    const stamp = ipv4Of(start, lastTimestamp);
    await eventually(async () => ipv4Of(await metrics(), lastTimestamp) > stamp, "a Sync that succeeds");
    return { failing: movement(start, failing), after: movement(failing, await metrics()) };
  });
}

/** A foreign rule refers to the chain of a deleted Service; further changes follow until the failure is reported. */
export function heldChain(program: string): Promise<Movement> {
  return withProxy(program, { mode: "nftables" }, shop(), async (proxy, { netns }, metrics) => {
    const start = await metrics();
    const [chain] =
      /(?<=chain )service-\S*shop\/web\/tcp\/http/.exec(netns.run("nft", "list chains ip")) ?? [];
    netns.run("nft", `add chain ip kube-proxy held; add rule ip kube-proxy held jump ${chain}`);
    proxy.api.remove("Service", "shop", "web");
    let port = 1000;
    const isReported = async () => {
      proxy.api.put(passing(++port));
      // A chain is deleted by a sync that begins more than a second after the one before.
      await sleep(1500);
      return ipv4Of(await metrics(), cleanupFailures) > 0;
    };
    await eventually(isReported, "a failure");
    return movement(start, await metrics());
  });
}

/** A Service that changes all the time. */
function passing(port: number): KubeObject {
  const ports = [{ name: "http", protocol: "TCP", port }];
  const made = service({ clusterIP: "172.30.0.11", ports }, { metadata: { name: "passing" } });
  return { apiVersion: "v1", kind: "Service", ...made } as unknown as KubeObject;
}

/** Whether a change has been taken up since then, and a Sync refused. */
function isDrained(start: string, now: string): boolean {
  const isQueued = ipv4Of(now, lastQueued) > ipv4Of(start, lastQueued);
  return (
    isQueued && sampleOf(now, `${prefix}endpoint_changes_pending`) === 0 && ipv4Of(now, syncFailures) > 0
  );
}

/** The metrics when nothing has been synced for a moment. */
async function settled(metrics: () => Promise<string>): Promise<string> {
  for (let before = await metrics(); ; ) {
    await sleep(500);
    const now = await metrics();
    if (ipv4Of(now, syncs) === ipv4Of(before, syncs)) return now;
    before = now;
  }
}

function movement(before: string, after: string): Movement {
  const failures = after.match(/^kubeproxy_sync_proxy_rules_nftables_\w+_failures_total\{.*?\}/gm) ?? [];
  return { failures, moved: moving.filter((name) => ipv4Of(before, name) !== ipv4Of(after, name)) };
}

function ipv4Of(metrics: string, name: string): number {
  return sampleOf(metrics, `${name}{ip_family="IPv4"}`);
}
