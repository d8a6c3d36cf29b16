// Which configurations are refused, with which message and position.
import { describe, expect, it } from "vitest";
import { complete, errorOf, fileError } from "../../../test/support/completed.ts";

describe("validation", () => {
  it("01/17 keywords of nodePortAddresses must not repeat, and are case-sensitive", () => {
    expect(fileError("nodePortAddresses: [localhost, localhost]")).toBe(
      'failed validate: KubeProxyConfiguration.NodePortAddresses[1]: Duplicate value: "localhost"',
    );
    expect(fileError("nodePortAddresses: [10.0.0.0/8, 10.0.0.0/8]")).toBe("no error");
    expect(fileError("nodePortAddresses: [Localhost]")).toContain("NodePortAddresses[0]: Invalid value");
    expect(fileError("nodePortAddresses: [10.1.2.3]")).toContain("for one address write 10.1.2.3/32");
  });

  it("01/22 minSyncPeriod above syncPeriod is an error on SyncPeriod", () => {
    expect(fileError("iptables: {syncPeriod: 1s, minSyncPeriod: 5s}")).toBe(
      'failed validate: KubeProxyConfiguration.SyncPeriod: Invalid value: "5s": must be greater than or equal to KubeProxyConfiguration.MinSyncPeriod',
    );
  });

  it("01/23 a negative syncPeriod causes exactly two errors on SyncPeriod", () => {
    const error = fileError("iptables: {syncPeriod: -5s, minSyncPeriod: 2s}");
    expect(error.match(/KubeProxyConfiguration\.SyncPeriod: Invalid value/g)).toHaveLength(2);
    expect(error).toMatch(/^failed validate: \[.*\]$/);
  });

  it("01/24 a blank in clusterCIDR is an error in ClusterCIDR mode only", () => {
    const body = 'clusterCIDR: "10.0.0.0/8, fd00::/64"\n';
    expect(fileError(body)).toMatch(/DetectLocalConfiguration\.ClusterCIDRs\[1\]: .*without blanks/);
    expect(fileError(`${body}detectLocalMode: NodeCIDR`)).toBe("no error");
  });

  it("01/25 cluster CIDRs are one, or one of each family", () => {
    expect(fileError("clusterCIDR: fd00::/64,fd01::/64")).toContain(
      'ClusterCIDRs: Invalid value: ["fd00::/64"',
    );
    expect(fileError("clusterCIDR: 10.0.0.0/8,fd00::/64,fd01::/64")).toContain("ClusterCIDRs: Invalid value");
    expect(fileError("clusterCIDR: 10.0.0.0/8,fd00::/64")).toBe("no error");
  });

  it("01/26 an empty --cluster-cidr is an error, an empty field is not", () => {
    expect(errorOf(["--cluster-cidr="])).toContain("ClusterCIDRs[0]: Invalid value");
    expect(fileError('clusterCIDR: ""')).toBe("no error");
  });

  it("01/33 the bit of iptables is checked in every mode", () => {
    expect(fileError("mode: nftables\niptables: {masqueradeBit: 32}")).toContain(
      "KubeProxyConfiguration.KubeProxyIPTablesConfiguration.MasqueradeBit: Invalid value: 32",
    );
  });

  it("01/34 the bit of nftables is checked in its mode only", () => {
    expect(fileError("nftables: {masqueradeBit: 32}")).toBe("no error");
    expect(fileError("mode: nftables\nnftables: {masqueradeBit: 32}")).toContain(
      "KubeProxyNFTablesConfiguration",
    );
  });

  it("01/35 vmodule is forbidden with JSON logs", () => {
    expect(fileError("logging: {format: json, vmodule: [{filePattern: a, verbosity: 1}]}")).toMatch(
      /^initialize logging: logging\.vmodule: Forbidden/,
    );
  });

  it("01/40 hidden metrics can be shown for the previous minor only", () => {
    expect(fileError('showHiddenMetricsForVersion: "1.35"')).toContain(
      "ShowHiddenMetricsForVersion: Invalid value",
    );
    expect(fileError('showHiddenMetricsForVersion: "1.36"')).toBe("no error");
  });

  it.each([
    ["ipvs.tcpTimeout", "mode: ipvs\nipvs: {tcpTimeout: -1s}", "KubeProxyIPVSConfiguration.TCPTimeout"],
    [
      "ipvs.tcpFinTimeout",
      "mode: ipvs\nipvs: {tcpFinTimeout: -1s}",
      "KubeProxyIPVSConfiguration.TCPFinTimeout",
    ],
    ["ipvs.udpTimeout", "mode: ipvs\nipvs: {udpTimeout: -1s}", "KubeProxyIPVSConfiguration.UDPTimeout"],
    [
      "ipvs.excludeCIDRs",
      "mode: ipvs\nipvs: {excludeCIDRs: [x]}",
      "KubeProxyIPVSConfiguration.ExcludeCidrs[0]",
    ],
    ["conntrack.maxPerCore", "conntrack: {maxPerCore: -1}", "KubeProxyConntrackConfiguration.MaxPerCore"],
    ["conntrack.min", "conntrack: {min: -1}", "KubeProxyConntrackConfiguration.Min"],
    ["conntrack.udpTimeout", "conntrack: {udpTimeout: -1s}", "KubeProxyConntrackConfiguration.UDPTimeout"],
    ["oomScoreAdj", "oomScoreAdj: 1001", "KubeProxyLinuxConfiguration.OOMScoreAdj"],
    ["mode", "mode: Iptables", "KubeProxyConfiguration.Mode.ProxyMode"],
    [
      "clientConnection.burst",
      "clientConnection: {burst: -1}",
      "KubeProxyConfiguration.ClientConnection.Burst",
    ],
    ["configSyncPeriod", "configSyncPeriod: -1s", "KubeProxyConfiguration.ConfigSyncPeriod"],
    ["bindAddress", 'bindAddress: "[::]"', "KubeProxyConfiguration.BindAddress"],
    ["metricsBindAddress", "metricsBindAddress: 1.2.3.4:0", "KubeProxyConfiguration.MetricsBindAddress"],
    ["detectLocalMode", "detectLocalMode: x", "KubeProxyConfiguration.DetectLocalMode: Unsupported value"],
    ["detectLocal", "detectLocalMode: BridgeInterface", "DetectLocalConfiguration.InterfaceName"],
    ["detectLocal", "detectLocalMode: InterfaceNamePrefix", "DetectLocalConfiguration.InterfacePrefix"],
    ["logging.flushFrequency", "logging: {flushFrequency: -1s}", "logging.flushFrequency"],
    ["logging.format", "logging: {format: xml}", "logging.format: Invalid value"],
    [
      "logging.format",
      "logging: {format: json}\nfeatureGates: {LoggingBetaOptions: false}",
      "logging.format: Forbidden",
    ],
    ["logging.vmodule", "logging: {vmodule: [{verbosity: 1}]}", "logging.vmodule[0]: Required value"],
    ["logging.vmodule", 'logging: {vmodule: [{filePattern: "a=b"}]}', "logging.vmodule[0]: Invalid value"],
    [
      "logging.options",
      "logging: {options: {text: {splitStream: true}}}",
      "logging.options.text.splitStream: Forbidden",
    ],
    [
      "logging.options",
      "logging: {options: {json: {infoBufferSize: 1Ki}}}",
      "logging.options.json.infoBufferSize: Forbidden",
    ],
  ])("refuses %s under the path that kube-proxy gives", (_, body, path) => {
    expect(fileError(body)).toContain(path);
  });

  it.each([
    ["conntrack: {tcpEstablishedTimeout: -1ns}", "KubeProxyConntrackConfiguration.TCPEstablishedTimeout"],
    ["conntrack: {tcpCloseWaitTimeout: -1ns}", "KubeProxyConntrackConfiguration.TCPCloseWaitTimeout"],
    ["conntrack: {udpStreamTimeout: -1ns}", "KubeProxyConntrackConfiguration.UDPStreamTimeout"],
    ["iptables: {masqueradeBit: -1}", "KubeProxyIPTablesConfiguration.MasqueradeBit"],
    ["iptables: {minSyncPeriod: -1ns}", "KubeProxyConfiguration.MinSyncPeriod"],
    ["oomScoreAdj: -1001", "KubeProxyLinuxConfiguration.OOMScoreAdj"],
    ["healthzBindAddress: 1.2.3.4:65536", "KubeProxyConfiguration.HealthzBindAddress"],
    ["healthzBindAddress: localhost:80", "KubeProxyConfiguration.HealthzBindAddress"],
    ["metricsBindAddress: 1.2.3.4:http", "KubeProxyConfiguration.MetricsBindAddress"],
    ["logging: {verbosity: 2147483648}", "logging.verbosity"],
    ["logging: {vmodule: [{filePattern: a, verbosity: 2147483648}]}", "logging.vmodule[0]"],
    ['logging: {vmodule: [{filePattern: "a,b"}]}', "logging.vmodule[0]"],
    ["logging: {options: {text: {infoBufferSize: 1}}}", "logging.options.text.infoBufferSize"],
    ["logging: {options: {json: {splitStream: true}}}", "logging.options.json.splitStream"],
  ])("refuses %s, which is just beyond what is allowed", (body, path) => {
    expect(fileError(body)).toContain(`${path}: `);
  });

  it.each([
    "conntrack: {tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s, udpStreamTimeout: 0s, udpTimeout: 0s, min: 0, maxPerCore: 0}",
    "iptables: {masqueradeBit: 31, minSyncPeriod: 30s, syncPeriod: 30s}",
    "iptables: {masqueradeBit: 0}\noomScoreAdj: -1000",
    "mode: nftables\nnftables: {masqueradeBit: 31}\noomScoreAdj: 1000",
    "mode: ipvs\nipvs: {tcpTimeout: 0s, tcpFinTimeout: 0s, udpTimeout: 0s, excludeCIDRs: [10.0.0.0/8, fd00::/8]}",
    // What counts in mode ipvs only.
    "ipvs: {tcpTimeout: -1s, tcpFinTimeout: -1s, udpTimeout: -1s, excludeCIDRs: [x]}",
    'healthzBindAddress: 1.2.3.4:65535\nmetricsBindAddress: "[fd00::1]:1"',
    "logging: {verbosity: 2147483647, vmodule: [{filePattern: a, verbosity: 2147483647}]}",
    "featureGates: {LoggingAlphaOptions: true}\nlogging: {options: {text: {infoBufferSize: 1, splitStream: true}}}",
    "detectLocalMode: NodeCIDR\nclusterCIDR: x,y,z",
  ])("allows %s, which is just within", (body) => {
    expect(fileError(body)).toBe("no error");
  });

  it("a flag can set zero where a file cannot", () => {
    expect(errorOf(["--iptables-sync-period=0"])).toContain(
      'SyncPeriod: Invalid value: "0s": must be greater than 0',
    );
    expect(errorOf(["--config-sync-period=0"])).toContain("ConfigSyncPeriod: Invalid value");
    expect(errorOf(["--log-flush-frequency=0"])).toContain("logging.flushFrequency: Invalid value");
    expect(errorOf(["--kube-api-burst=0"])).toBe("no error");
  });

  it.each(["constructor", "__proto__", "toString", "hasOwnProperty"])("has no mode %s", (mode) => {
    const expected = `KubeProxyConfiguration.Mode.ProxyMode: Invalid value: "${mode}": must be iptables, `;
    expect(fileError(`mode: ${mode}`)).toContain(expected);
    expect(errorOf([`--proxy-mode=${mode}`])).toContain(expected);
  });

  it("names the line or the flag of each error", () => {
    expect(complete([], "conntrack:\n  min: -1\noomScoreAdj: 2000")).toMatchObject({
      places: ["proxy.yaml:4:3: conntrack.min", "proxy.yaml:5:1: oomScoreAdj"],
    });
    expect(complete([], "nodePortAddresses:\n- primary\n- x\nclusterCIDR: a,b")).toMatchObject({
      places: ["proxy.yaml:5:3: nodePortAddresses", "proxy.yaml:6:1: clusterCIDR"],
    });
    expect(complete(["--proxy-mode=x"])).toMatchObject({ places: ["--proxy-mode"] });
  });

  it("reports all errors together", () => {
    expect(errorOf(["--proxy-mode=x", "--conntrack-min=-1"])).toMatch(
      /^failed validate: \[.*Min: .*, .*ProxyMode: .*\]$/,
    );
  });

  it("remarks on gates that will go away", () => {
    expect(complete(["--feature-gates=KubeProxyIPVS=true"]).notices).toEqual([
      "feature gate KubeProxyIPVS is deprecated and will be removed in a future release: do not set it",
    ]);
  });
});
