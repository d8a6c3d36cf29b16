// The requirements of configuration: from flags and file to the effective configuration.
import { describe, expect, it } from "vitest";
import { configOf, errorOf, fileError, fromFile } from "../../test/support/completed.ts";
import { writeConfig } from "./file/write.ts";
import { type ModeName, modes } from "./modes.ts";
import { nodeNameOf } from "./resolve/resolve.ts";
import { seconds } from "./units/duration.ts";

describe("defaults and precedence", () => {
  const builtIn = {
    mode: "iptables",
    modeDefaulted: true,
    detectLocalMode: "ClusterCIDR",
    syncPeriod: seconds(30),
    pace: { kind: "cost", written: seconds(1) },
    configSyncPeriod: seconds(900),
    healthzBindAddress: "0.0.0.0:10256",
    metricsBindAddress: "127.0.0.1:10249",
    oomScoreAdj: -999,
  };

  it("01/1 no flags result in the built-in defaults", () => {
    expect(configOf([])).toMatchObject(builtIn);
  });

  it("01/2 a file with only its header has the same result", () => {
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
      pace: { kind: "period", period: seconds(3) },
    });
    for (const mode of ["iptables", "nftables", ""]) {
      expect(configOf([...periods, `--proxy-mode=${mode}`])).toMatchObject({
        syncPeriod: seconds(11),
        pace: { kind: "period", period: seconds(2) },
      });
    }
  });

  it("01/10 ipvs has minSyncPeriod 1s from flags and 0s from a file", () => {
    expect(configOf(["--proxy-mode=ipvs"]).pace).toEqual({ kind: "cost", written: seconds(1) });
    expect(fromFile("mode: ipvs").pace).toEqual({ kind: "cost", written: 0n });
  });

  it("01/11 minSyncPeriod 0 is the default in a file and really 0 as a flag", () => {
    expect(fromFile("iptables: {minSyncPeriod: 0s}").pace).toEqual({ kind: "cost", written: seconds(1) });
    expect(configOf(["--iptables-min-sync-period=0"]).pace).toEqual({ kind: "period", period: 0n });
  });

  it.for(["iptables", "ipvs", "nftables", "userspace"])(
    "in %s mode Syncs are paced by cost unless minSyncPeriod is set, even to kube-proxy's default",
    (mode) => {
      const block = modes[mode as ModeName].periods;
      const paceIn = (text: string) => fromFile(`mode: ${mode}\n${block}: {${text}}`).pace;
      expect(paceIn("").kind).toBe("cost");
      expect(paceIn("minSyncPeriod: 0s").kind).toBe("cost");
      expect(paceIn("minSyncPeriod: 1s")).toEqual({ kind: "period", period: seconds(1) });
      expect(paceIn("minSyncPeriod: 10ms")).toEqual({ kind: "period", period: 10_000_000n });
      expect(configOf([`--proxy-mode=${mode}`]).pace.kind).toBe("cost");
    },
  );

  it("a written minSyncPeriod counts as set", () => {
    const written = writeConfig(configOf([])).replace(/^(apiVersion|kind): .*\n/gm, "");
    expect(fromFile(written).pace).toEqual({ kind: "period", period: seconds(1) });
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

  it("uses the settings of the selected mode", () => {
    const body = [
      "iptables: {syncPeriod: 5s, minSyncPeriod: 2s, masqueradeAll: true}",
      "ipvs: {syncPeriod: 6s, minSyncPeriod: 3s}",
      "nftables: {syncPeriod: 7s, minSyncPeriod: 4s}",
    ].join("\n");
    const of = (mode: string) => fromFile(`${body}\nmode: "${mode}"`);
    expect(of("")).toMatchObject({
      syncPeriod: seconds(5),
      pace: { kind: "period", period: seconds(2) },
      masqueradeAll: true,
    });
    expect(of("ipvs")).toMatchObject({
      syncPeriod: seconds(6),
      pace: { kind: "period", period: seconds(3) },
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
