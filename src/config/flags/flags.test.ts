// Flags by pflag's rules, their help, and properties on generated arguments.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { helpText, printedFlags, usageText } from "./help.ts";
import { type ReadFlags, readFlags } from "./read.ts";
import { flagAt, flagNames } from "./table.ts";

function read(...argv: string[]): ReadFlags {
  const result = readFlags(argv);
  if (!result.ok) throw new Error(result.reason);
  return result.value;
}

function refusal(...argv: string[]): string {
  const result = readFlags(argv);
  return result.ok ? "no error" : result.reason;
}

describe("reading", () => {
  it("accepts values after = or as the next argument", () => {
    expect(read("--proxy-mode=ipvs", "--conntrack-min", "7").given).toEqual({
      "proxy-mode": "ipvs",
      "conntrack-min": 7,
    });
    expect(read("--proxy-mode=").given).toEqual({ "proxy-mode": "" });
    expect(read("--kubeconfig", "--config").given).toEqual({ kubeconfig: "--config" });
  });

  it("accepts short flags in all forms", () => {
    for (const argv of [["-v=2"], ["-v2"], ["-v", "2"], ["--v=2"], ["--v", "2"]]) {
      expect(read(...argv).given).toEqual({ v: 2 });
    }
    expect(read("-h").given).toEqual({ help: true });
  });

  it("sets a bool without a value, and accepts one only after =", () => {
    expect(read("--cleanup").given).toEqual({ cleanup: true });
    expect(read("--cleanup=F").given).toEqual({ cleanup: false });
    expect(read("--cleanup", "false")).toMatchObject({ given: { cleanup: true }, positional: ["false"] });
  });

  it("behaviour/5: accepts flags of earlier releases, with a notice for each, and does not show them", () => {
    const argv = [
      "--proxy-port-range=300-400",
      "--boot-id-file=/a",
      "--machine-id-file",
      "/b",
      "--logtostderr",
    ];
    const { given, notices } = read(...argv);
    expect(given).toMatchObject({
      "proxy-port-range": "300-400",
      "machine-id-file": "/b",
      logtostderr: true,
    });
    expect(notices).toHaveLength(4);
    expect(notices[1]).toBe("Flag --boot-id-file has been deprecated, it has no effect; remove it");
    expect(helpText(100)).not.toMatch(/boot-id-file|Earlier releases/);
    expect(new Map(printedFlags({})).has("boot-id-file")).toBe(false);
    expect(new Map(printedFlags(given)).get("boot-id-file")).toBe("/a");
  });

  it("turns underscores into dashes", () => {
    expect(read("--proxy_mode=ipvs", "--masquerade_all").given).toEqual({
      "proxy-mode": "ipvs",
      "masquerade-all": true,
    });
  });

  it("collects lists, maps and vmodule over several uses", () => {
    expect(read("--nodeport-addresses=a,b", '--nodeport-addresses="c,d", e').given).toEqual({
      "nodeport-addresses": ["a", "b", "c,d", " e"],
    });
    expect(read("--feature-gates=A=true, B = false,", "--feature-gates=A=false").given).toEqual({
      "feature-gates": { A: false, B: false },
    });
    expect(read("--vmodule=a=1,", "--vmodule=b*=2").given).toEqual({
      vmodule: [
        { filePattern: "a", verbosity: 1 },
        { filePattern: "b*", verbosity: 2 },
      ],
    });
  });

  it("uses the last value of all other flags", () => {
    expect(read("--proxy-mode=a", "--proxy-mode=b").given).toEqual({ "proxy-mode": "b" });
  });

  it("returns arguments that are no flags, and everything after --", () => {
    expect(read("a", "-", "--cleanup", "", "--", "--cleanup", "-x").positional).toEqual([
      "a",
      "-",
      "",
      "--cleanup",
      "-x",
    ]);
  });

  it("notices deprecated flags", () => {
    expect(read("--healthz-port=1").notices).toEqual([
      "Flag --healthz-port has been deprecated, use --healthz-bind-address instead",
    ]);
  });

  it.each([
    [["--proxymode=x"], "unknown flag: --proxymode (did you mean --proxy-mode?)"],
    [["--nothing-like-it"], "unknown flag: --nothing-like-it"],
    [["-x"], "unknown shorthand flag: 'x' in -x"],
    [["--config"], "flag needs an argument: --config"],
    [["-v"], "flag needs an argument: 'v' in -v"],
    [["--=x"], "bad flag syntax: --=x"],
    [["---x"], "bad flag syntax: ---x"],
    [["-v=x"], 'invalid argument "x" for "-v, --v" flag: "x" is not a whole number without a sign'],
    [["--bind-address=x"], 'invalid argument "x" for "--bind-address" flag: "x" is not a valid IP address'],
    [
      ["--feature-gates=A"],
      'invalid argument "A" for "--feature-gates" flag: malformed pair "A": write name=true or name=false',
    ],
    [
      ["--version=v1.36.0"],
      'invalid argument "v1.36.0" for "--version" flag: "v1.36.0" must be a version of v1.37.1',
    ],
  ])("refuses %j", (argv, reason) => {
    expect(refusal(...argv)).toBe(reason);
  });

  it.each([
    ["--iptables-sync-period=15"],
    ["--kube-api-qps=fast"],
    ["--healthz-bind-address=[::1]"],
    ["--metrics-bind-address=1.2.3.4:99999"],
    ["--metrics-bind-address=host:1"],
    ["--log-text-info-buffer-size=big"],
    ['--nodeport-addresses=a"b'],
    ["--vmodule=a"],
    ["--cleanup=maybe"],
    ["--version=maybe"],
  ])("refuses %s", (argument) => {
    expect(refusal(argument)).toMatch(/^invalid argument ".*" for "--.*" flag: ./s);
  });

  it("reads or refuses any arguments, and never throws", () => {
    const name = fc.constantFrom(...flagNames, "x", "v_module");
    const value = fc.oneof(fc.string(), fc.constantFrom("true", "1s", "a=1", "1.2.3.4", "::1", "5", "raw"));
    const argument = fc.oneof(
      fc.tuple(name, value).map(([flag, text]) => `--${flag}=${text}`),
      name.map((flag) => `--${flag}`),
      fc.string(),
      fc.string().map((text) => `-${text}`),
    );
    fc.assert(
      fc.property(fc.array(argument, { maxLength: 6 }), (argv) => {
        const result = readFlags(argv);
        const shown = result.ok ? printedFlags(result.value.given).length : result.reason.length;
        expect(shown).toBeGreaterThan(0);
      }),
      { numRuns: 1_000 },
    );
  });

  it("reads back what it prints", () => {
    const samples = read(
      "--conntrack-udp-timeout=90s",
      "--kube-api-qps=0.1",
      "--feature-gates=B=true,A=false",
      "--vmodule=a=1",
    );
    const printed = new Map(printedFlags(samples.given));
    for (const [flag, value] of Object.entries(samples.given)) {
      expect(read(`--${flag}=${printed.get(flag as never)}`).given).toEqual({ [flag]: value });
    }
  });
});

describe("help", () => {
  // What `kube-proxy --help` of v1.37 lists; the deprecated ones are hidden.
  const upstream =
    `bind-address bind-address-hard-fail cleanup cluster-cidr config config-sync-period conntrack-max-per-core
    conntrack-min conntrack-tcp-be-liberal conntrack-tcp-timeout-close-wait conntrack-tcp-timeout-established
    conntrack-udp-timeout conntrack-udp-timeout-stream detect-local-mode feature-gates healthz-bind-address help
    hostname-override init-only iptables-localhost-nodeports iptables-masquerade-bit iptables-min-sync-period
    iptables-sync-period ipvs-exclude-cidrs ipvs-min-sync-period ipvs-scheduler ipvs-strict-arp ipvs-sync-period
    ipvs-tcp-timeout ipvs-tcpfin-timeout ipvs-udp-timeout kube-api-burst kube-api-content-type kube-api-qps kubeconfig
    log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream
    logging-format masquerade-all master metrics-bind-address nodeport-addresses oom-score-adj pod-bridge-interface
    pod-interface-name-prefix profiling proxy-mode show-hidden-metrics-for-version v version vmodule write-config-to`
      .trim()
      .split(/\s+/);

  it("lists every flag of kube-proxy and nothing else", () => {
    const listed = [...helpText(100).matchAll(/^ {2}(?:-\w, | {4})--([\w-]+)/gm)].map((match) => match[1]!);
    expect(listed.toSorted()).toEqual(upstream.toSorted());
    expect(
      flagNames.filter((name) => flagAt(name).deprecated !== undefined && !flagAt(name).removed),
    ).toEqual(["healthz-port", "metrics-port"]);
  });

  it("keeps to the width", () => {
    for (const width of [90, 110, 160]) {
      for (const line of usageText(width).split("\n")) expect(line.length).toBeLessThanOrEqual(width);
    }
  });

  it("shows defaults as kube-proxy prints them", () => {
    const text = helpText(200);
    for (const shown of [
      "(default 15m0s)",
      "(default 24h0m0s)",
      "(default -999)",
      "(default 127.0.0.1:10249)",
      "(default: paced by the cost of Syncs)",
    ]) {
      expect(text).toContain(shown);
    }
  });
});
