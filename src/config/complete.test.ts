// The proof obligations of configuration: from flags and file to the effective configuration or its errors.
import { describe, expect, it } from "vitest";
import { type Completed, completeConfig } from "./complete.ts";
import type { ValidConfig } from "./config.ts";
import { readFlags } from "./flags/read.ts";
import { nodeNameOf } from "./resolve.ts";
import { seconds } from "./units/duration.ts";
import { writeConfig } from "./write.ts";

const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

function complete(argv: readonly string[], body: string | null = null): Completed {
  const read = readFlags(argv);
  if (!read.ok) throw new Error(read.reason);
  return completeConfig(read.value.given, body === null ? null : { name: "proxy.yaml", text: header + body });
}

function configOf(argv: readonly string[], body: string | null = null): ValidConfig {
  const completed = complete(argv, body);
  if (!completed.ok) throw new Error(completed.error);
  return completed.config;
}

function errorOf(argv: readonly string[], body: string | null = null): string {
  const completed = complete(argv, body);
  return completed.ok ? "no error" : completed.error;
}

const fromFile = (body: string, argv: readonly string[] = []) => configOf(argv, body);
const fileError = (body: string) => errorOf([], body);

describe("defaults and precedence", () => {
  const builtIn = {
    mode: "iptables",
    modeDefaulted: true,
    detectLocalMode: "ClusterCIDR",
    syncPeriod: seconds(30),
    minSyncPeriod: seconds(1),
    configSyncPeriod: seconds(900),
    healthzBindAddress: "0.0.0.0:10256",
    metricsBindAddress: "127.0.0.1:10249",
    oomScoreAdj: -999,
  };

  it("01/1 no flags give the built-in defaults", () => {
    expect(configOf([])).toMatchObject(builtIn);
  });

  it("01/2 a file with only its header gives the same", () => {
    expect(fromFile("")).toEqual(configOf([]));
  });

  it("01/6 flags with a field in the file are ignored beside --config", () => {
    expect(fromFile("ipvs: {scheduler: lc}", ["--ipvs-scheduler=x", "--proxy-mode=ipvs"])).toMatchObject({
      ipvs: { scheduler: "lc" },
      mode: "iptables",
    });
  });

  it("01/7 logging flags win over the file, and vmodule entries of both count, flags first", () => {
    const body = "logging: {verbosity: 10, vmodule: [{filePattern: foo, verbosity: 6}]}";
    expect(fromFile(body, ["-v=7", "--vmodule", "goo=8"]).logging).toMatchObject({
      verbosity: 7,
      vmodule: [
        { filePattern: "goo", verbosity: 8 },
        { filePattern: "foo", verbosity: 6 },
      ],
    });
    expect(fromFile(body).logging.verbosity).toBe(10);
  });

  it("01/8 --hostname-override wins over the file, trimmed and in small letters; blanks alone are refused", () => {
    const config = fromFile("hostnameOverride: foo", ["--hostname-override", "  BAR "]);
    expect(nodeNameOf(config, "host")).toBe("bar");
    expect(nodeNameOf(fromFile('hostnameOverride: " Foo "'), "host")).toBe("foo");
    expect(nodeNameOf(configOf([]), " Host ")).toBe("host");
    expect(errorOf(["--hostname-override=   "])).toContain("empty hostname-override is invalid");
  });

  it("01/9 the pair of period flags of the selected mode counts", () => {
    const periods = [
      "--iptables-sync-period=11s",
      "--iptables-min-sync-period=2s",
      "--ipvs-sync-period=22s",
      "--ipvs-min-sync-period=3s",
    ];
    expect(configOf([...periods, "--proxy-mode=ipvs"])).toMatchObject({
      syncPeriod: seconds(22),
      minSyncPeriod: seconds(3),
    });
    for (const mode of ["iptables", "nftables", ""]) {
      expect(configOf([...periods, `--proxy-mode=${mode}`])).toMatchObject({
        syncPeriod: seconds(11),
        minSyncPeriod: seconds(2),
      });
    }
  });

  it("01/10 ipvs has minSyncPeriod 1s from flags and 0s from a file", () => {
    expect(configOf(["--proxy-mode=ipvs"]).minSyncPeriod).toBe(seconds(1));
    expect(fromFile("mode: ipvs").minSyncPeriod).toBe(0n);
  });

  it("01/11 minSyncPeriod 0 is the default in a file and really 0 as a flag", () => {
    expect(fromFile("iptables: {minSyncPeriod: 0s}").minSyncPeriod).toBe(seconds(1));
    expect(configOf(["--iptables-min-sync-period=0"]).minSyncPeriod).toBe(0n);
  });

  it("01/12 port flag 0 turns the health server off, and is refused for metrics", () => {
    expect(configOf(["--healthz-port=0"]).healthzBindAddress).toBe("");
    expect(errorOf(["--metrics-port=0"])).toContain(
      "KubeProxyConfiguration.MetricsBindAddress: Invalid value",
    );
  });

  it("01/13 a port flag counts only for an address without a port", () => {
    expect(configOf(["--healthz-port=12345"]).healthzBindAddress).toBe("0.0.0.0:10256");
    const bare = (address: string) =>
      configOf(["--healthz-port=12345", `--healthz-bind-address=${address}`]).healthzBindAddress;
    expect(bare("1.2.3.4")).toBe("1.2.3.4:12345");
    expect(bare("fd00::5")).toBe("[fd00::5]:12345");
  });

  it("01/14 an empty address flag keeps the default", () => {
    expect(configOf(["--healthz-bind-address="]).healthzBindAddress).toBe("0.0.0.0:10256");
    expect(configOf(["--bind-address=", "--metrics-bind-address="])).toMatchObject(builtIn);
  });

  it("01/15 server addresses follow the family of bindAddress in a file, not as a flag", () => {
    expect(fromFile('bindAddress: "fd00::1"')).toMatchObject({
      healthzBindAddress: "[::]:10256",
      metricsBindAddress: "[::1]:10249",
    });
    expect(configOf(["--bind-address=fd00::1"])).toMatchObject({
      bindAddress: "fd00::1",
      healthzBindAddress: "0.0.0.0:10256",
      metricsBindAddress: "127.0.0.1:10249",
    });
  });

  it("01/16 a bare address in a file gets the port; brackets without a port are refused", () => {
    expect(fromFile("healthzBindAddress: fd00::5").healthzBindAddress).toBe("[fd00::5]:10256");
    expect(fromFile("metricsBindAddress: 10.0.0.1").metricsBindAddress).toBe("10.0.0.1:10249");
    expect(fileError('healthzBindAddress: "[fd00::5]"')).toContain(
      "KubeProxyConfiguration.HealthzBindAddress",
    );
  });

  it("01/37 an explicit conntrack time-out of 0 stays", () => {
    expect(fromFile("conntrack: {tcpEstablishedTimeout: 0s}").conntrack).toMatchObject({
      tcpEstablishedTimeout: 0n,
      tcpCloseWaitTimeout: seconds(3600),
    });
  });

  it("01/39 an underscore in a flag is a dash", () => {
    expect(configOf(["--proxy_mode=iptables"])).toMatchObject({ mode: "iptables", modeDefaulted: false });
  });

  it("honours --master and --write-config-to beside the deprecated port flags", () => {
    expect(configOf(["--healthz-port=0", "--write-config-to=x"]).healthzBindAddress).toBe("0.0.0.0:10256");
  });
});

describe("modes", () => {
  it("01/18 nftables mode without nodePortAddresses means primary", () => {
    expect(configOf(["--proxy-mode=nftables"]).nodePortAddresses).toEqual(["primary"]);
    expect(fromFile("mode: nftables\nnodePortAddresses: []").nodePortAddresses).toEqual(["primary"]);
    expect(configOf([]).nodePortAddresses).toBeNull();
  });

  it("01/27 mode ipvs needs the gate KubeProxyIPVS, which is on", () => {
    expect(configOf(["--proxy-mode=ipvs"]).mode).toBe("ipvs");
    expect(errorOf(["--proxy-mode=ipvs", "--feature-gates=KubeProxyIPVS=false"])).toMatch(
      /KubeProxyConfiguration\.Mode\.ProxyMode: Invalid value: "ipvs".*KubeProxyIPVS/,
    );
  });

  it("takes the settings of the selected mode", () => {
    const body = [
      "iptables: {syncPeriod: 5s, minSyncPeriod: 2s, masqueradeAll: true}",
      "ipvs: {syncPeriod: 6s, minSyncPeriod: 3s}",
      "nftables: {syncPeriod: 7s, minSyncPeriod: 4s}",
    ].join("\n");
    const of = (mode: string) => fromFile(`${body}\nmode: "${mode}"`);
    expect(of("")).toMatchObject({ syncPeriod: seconds(5), minSyncPeriod: seconds(2), masqueradeAll: true });
    expect(of("ipvs")).toMatchObject({
      syncPeriod: seconds(6),
      minSyncPeriod: seconds(3),
      masqueradeAll: true,
    });
    expect(of("nftables")).toMatchObject({ syncPeriod: seconds(7), masqueradeAll: false });
    expect(of("userspace")).toMatchObject({ syncPeriod: seconds(5), masqueradeAll: true });
  });

  it("01/28 locked and unknown gates are refused", () => {
    expect(fileError("featureGates: {PreferSameTrafficDistribution: false}")).toBe(
      "failed complete: cannot set feature gate PreferSameTrafficDistribution to false, feature is locked to true",
    );
    expect(fileError("featureGates: {KubeProxyIPV: true}")).toBe(
      "failed complete: unrecognized feature gate: KubeProxyIPV (did you mean KubeProxyIPVS?)",
    );
    expect(configOf(["--feature-gates=PreferSameTrafficDistribution=true"]).mode).toBe("iptables");
  });

  it("01/29 the written file has the periods of its mode only", () => {
    const written = writeConfig(configOf(["--proxy-mode=nftables"]));
    expect(written).toContain("nodePortAddresses:\n- primary\n");
    expect(written).toContain("  minSyncPeriod: 1s\n  syncPeriod: 30s\nnodePortAddresses");
    expect(written).toContain(
      "iptables:\n  localhostNodePorts: true\n  masqueradeAll: false\n  masqueradeBit: 14\n  minSyncPeriod: 0s\n  syncPeriod: 0s\n",
    );
  });
});

describe("decoding", () => {
  it("01/3 an unknown field is a remark, a wrong type is an error", () => {
    const completed = complete([], "iptable: {}\nconntrack: {Min: 5}\n");
    expect(completed.notices).toEqual([
      'proxy.yaml:3:1: unknown field "iptable" is ignored; did you mean "iptables"?',
      'proxy.yaml:4:13: unknown field "conntrack.Min" is ignored; did you mean "conntrack.min"?',
    ]);
    expect(completed.ok && completed.config.conntrack.min).toBe(131_072);
    expect(fileError("conntrack: {min: many}\nmode: 3\n")).toBe(
      'failed complete: failed to decode: [proxy.yaml:3:13: conntrack.min: must be a whole number, not "many", proxy.yaml:4:1: mode: must be text, not 3: put it in quotes, "3"]',
    );
  });

  it("01/4 of a repeated field the last value counts", () => {
    const completed = complete([], "bindAddress: 1.2.3.4\nbindAddress: 5.6.7.8\n");
    expect(completed.ok && completed.config.bindAddress).toBe("5.6.7.8");
    expect(completed.notices).toEqual([
      'proxy.yaml:4:1: field "bindAddress" is given more than once; the last one counts',
    ]);
  });

  it("01/5 another kind is refused", () => {
    const text = header.replace("KubeProxyConfiguration", "KubeSchedulerConfiguration");
    expect(completeConfig({}, { name: "f", text })).toMatchObject({
      ok: false,
      error: expect.stringContaining('f:2:1: kind is "KubeSchedulerConfiguration"') as unknown,
    });
    for (const other of [
      "",
      "kind: KubeProxyConfiguration",
      header.replace("v1alpha1", "v1"),
      "- a",
      "# nothing",
    ]) {
      expect(completeConfig({}, { name: "f", text: other }).ok).toBe(false);
    }
  });

  it("01/36 only flushFrequency may be an integer, of nanoseconds", () => {
    expect(fromFile("logging: {flushFrequency: 1000000000}").logging.flushFrequency.duration).toBe(
      seconds(1),
    );
    expect(fileError("configSyncPeriod: 15")).toContain(
      "configSyncPeriod: must be a duration with a unit, not 15: add a unit, like 15s",
    );
  });

  it("reads JSON, aliases, merges and YAML 1.1 words, and only the first document", () => {
    const json = `{"apiVersion": "kubeproxy.config.k8s.io/v1alpha1",\t"kind": "KubeProxyConfiguration", "mode": "ipvs"}`;
    expect(completeConfig({}, { name: "f", text: json })).toMatchObject({
      ok: true,
      config: { mode: "ipvs" },
    });
    expect(fromFile("enableProfiling: yes\noomScoreAdj: 010\nhostnameOverride: 1:30")).toMatchObject({
      enableProfiling: true,
      oomScoreAdj: 8,
      hostnameOverride: "1:30",
    });
    expect(
      fromFile("iptables: &a {masqueradeBit: 3}\nnftables: {<<: *a, masqueradeAll: true}"),
    ).toMatchObject({
      iptables: { masqueradeBit: 3 },
      nftables: { masqueradeBit: 3 },
    });
    expect(fromFile("mode: ipvs\n---\nmode: nftables").mode).toBe("ipvs");
  });

  it("treats null like an absent field", () => {
    expect(fromFile("clientConnection:\nconntrack: {min: null}\nnodePortAddresses: ~\nmode:")).toEqual(
      configOf([]),
    );
  });

  it("points at the line of broken YAML", () => {
    expect(fileError("bindAddress: ::")).toContain("proxy.yaml:3:");
    expect(fileError('mode: "ipvs')).toContain("proxy.yaml:3:");
    expect(fileError("mode: *nowhere")).toContain("proxy.yaml");
  });
});

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

  it("01/23 a negative syncPeriod gives exactly two errors on SyncPeriod", () => {
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

  it("names the line or the flag behind each error", () => {
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
