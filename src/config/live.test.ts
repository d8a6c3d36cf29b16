// What a running daemon applies from a changed file.
import { describe, expect, it } from "vitest";
import { completeConfig } from "./complete.ts";
import type { ValidConfig } from "./config.ts";
import { compareConfigs } from "./live.ts";
import { seconds } from "./units/duration.ts";

describe("a changed configuration", () => {
  it("applies changes of settings, sync periods and logging", () => {
    const { live, later, next } = compareConfigs(
      config("nftables: {minSyncPeriod: 1s, syncPeriod: 30s}"),
      config(`
nftables: {minSyncPeriod: 2s, syncPeriod: 1m, masqueradeAll: true}
clusterCIDR: 10.0.0.0/8
nodePortAddresses: [10.0.0.0/8]
logging: {verbosity: 4}
`),
    );
    expect(live.map(({ field }) => field)).toEqual([
      "clusterCIDR",
      "logging.verbosity",
      "nftables.masqueradeAll",
      "nftables.minSyncPeriod",
      "nftables.syncPeriod",
      "nodePortAddresses",
    ]);
    expect(live[3]).toEqual({ field: "nftables.minSyncPeriod", from: "1s", to: "2s" });
    expect(later).toEqual([]);
    expect(next.pace).toEqual({ kind: "period", period: seconds(2) });
    expect(next).toMatchObject({
      masqueradeAll: true,
      clusterCIDRs: ["10.0.0.0/8"],
      nodePortAddresses: ["10.0.0.0/8"],
      logging: { verbosity: 4 },
    });
  });

  it("keeps what needs a restart, and reports it", () => {
    const running = config("healthzBindAddress: 127.0.0.1:10256");
    const { live, later, next } = compareConfigs(
      running,
      config("healthzBindAddress: 127.0.0.1:1\nclientConnection: {qps: 9}\nconntrack: {maxPerCore: 1}"),
    );
    expect(live).toEqual([]);
    expect(later.map(({ field }) => field)).toEqual([
      "clientConnection.qps",
      "conntrack.maxPerCore",
      "healthzBindAddress",
    ]);
    expect(next).toEqual(running);
  });

  it("is found where the file keeps it for the mode", () => {
    const block = (seconds: number) =>
      `mode: iptables\niptables: {minSyncPeriod: ${seconds}s, syncPeriod: 60s}`;
    const { live, next } = compareConfigs(config(block(1)), config(block(3)));
    expect(live.map(({ field }) => field)).toEqual(["iptables.minSyncPeriod"]);
    expect(next.pace).toEqual({ kind: "period", period: seconds(3) });
  });

  it("includes a minSyncPeriod that is set to what kube-proxy writes when it is not set", () => {
    const { live, next } = compareConfigs(config(""), config("nftables: {minSyncPeriod: 1s}"));
    expect(live).toEqual([{ field: "nftables.minSyncPeriod", from: "0s", to: "1s" }]);
    expect(next.pace).toEqual({ kind: "period", period: seconds(1) });
    expect(compareConfigs(next, config("")).next.pace.kind).toBe("cost");
  });

  it("of another mode changes nothing", () => {
    const running = config("");
    const { live, next } = compareConfigs(running, config("mode: iptables\nclusterCIDR: 10.0.0.0/8"));
    expect(live).toEqual([]);
    expect(next).toEqual(running);
  });

  it("goes to and from NodeCIDR only at a start", () => {
    const { live, later } = compareConfigs(
      config("detectLocalMode: ClusterCIDR"),
      config("detectLocalMode: NodeCIDR"),
    );
    expect([live.length, later.map(({ field }) => field)]).toEqual([0, ["detectLocalMode"]]);
    const other = compareConfigs(
      config("detectLocalMode: ClusterCIDR"),
      config("detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: cni0}"),
    );
    expect(other.next).toMatchObject({
      detectLocalMode: "BridgeInterface",
      detectLocal: { bridgeInterface: "cni0" },
    });
  });

  it("that reached the same in the end is what was wanted", () => {
    const wanted = config("nftables: {minSyncPeriod: 5s}\nlogging: {verbosity: 1}");
    const { next } = compareConfigs(config(""), wanted);
    expect(compareConfigs(next, wanted)).toMatchObject({ live: [], later: [] });
  });
});

function config(text: string): ValidConfig {
  const mode = text.includes("mode: iptables") ? "" : "mode: nftables\n";
  const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
  const completed = completeConfig({}, { name: "config.yaml", text: `${header}${mode}${text}` });
  if (!completed.ok) throw new Error(completed.error);
  return completed.config;
}
