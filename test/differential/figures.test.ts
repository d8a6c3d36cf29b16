// Figures that dashboards show, side by side: what the real kube-proxy counts, ours counts alike.
import { describe, expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { reasonToSkip } from "../kernel/netns.ts";
import { figuresOf } from "./figures.ts";
import { ourProgram, reasonNotToRun } from "./program.ts";

const assets = findAssets("kube-proxy");
const reason = reasonToSkip() ?? (assets.found ? reasonNotToRun(ourProgram) : assets.reason);

/** Three Services, each seen by both families; seven events of slices, one of which changes nothing. */
const common = {
  sync_proxy_rules_service_changes_total: 6,
  sync_proxy_rules_service_changes_pending: 0,
  sync_proxy_rules_endpoint_changes_total: 7,
  sync_proxy_rules_endpoint_changes_pending: 0,
  'sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"}': 2,
  'sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="internal"}': 2,
  'sync_proxy_rules_no_local_endpoints_total{ip_family="IPv6",traffic_policy="external"}': 0,
  'sync_proxy_rules_no_local_endpoints_total{ip_family="IPv6",traffic_policy="internal"}': 0,
  'network_programming_duration_seconds_count{ip_family="IPv4"}': 1,
  'proxy_healthz_total{code="200"}': 3,
  'proxy_livez_total{code="200"}': 1,
};
/** Of the gate. */
const listeners = {
  'nftables_localhost_nodeport_listeners{ip_family="IPv4"}': 1,
  'nftables_localhost_nodeport_listeners{ip_family="IPv6"}': 0,
};
/** Rules that each table should hold. */
const rules = {
  'sync_proxy_rules_iptables_total{ip_family="IPv4",table="filter"}': 9,
  'sync_proxy_rules_iptables_total{ip_family="IPv4",table="nat"}': 13,
  'sync_proxy_rules_iptables_total{ip_family="IPv6",table="filter"}': 3,
  'sync_proxy_rules_iptables_total{ip_family="IPv6",table="nat"}': 5,
};
const localhost = {
  featureGates: { KubeProxyNFTablesLocalhostNodePorts: true },
  nodePortAddresses: ["127.0.0.0/8", "::1/128"],
};

describe("03/12 03/31 03/32 03/34 03/38 10/55 figures", () => {
  it.for([
    { mode: "nftables", settings: localhost, wanted: { ...common, ...listeners } },
    { mode: "iptables", settings: {}, wanted: { ...common, ...rules } },
  ] as const)("of mode $mode are those of kube-proxy v1.37", async ({ mode, settings, wanted }, { skip }) => {
    if (reason !== null || !assets.found) return skip(reason ?? "");
    expect(await figuresOf(assets.paths["kube-proxy"], { mode, ...settings }, wanted)).toEqual(wanted);
    expect(await figuresOf(ourProgram, { mode, ...settings }, wanted)).toEqual(wanted);
  });
});
