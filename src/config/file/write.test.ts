// The written file: golden defaults, quoting as Go does it, and reading back what was written.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { completeConfig } from "../complete.ts";
import { effective, fold, type ProxyConfig, plainFile, unfold } from "../config.ts";
import { withDefaults } from "../defaults.ts";
import type { Given } from "../flags/table.ts";
import { decodeConfig } from "./decode.ts";
import type { Path } from "./fields.ts";
import { writeConfig } from "./write.ts";

function written(given: Given): string {
  const completed = completeConfig({ ...given, "write-config-to": "x" }, null);
  if (!completed.ok) throw new Error(completed.error);
  return writeConfig(completed.config);
}

function configOf(fields: Partial<Record<Path, unknown>>): ProxyConfig {
  const file = withDefaults(new Map(Object.entries(fields)) as Map<Path, unknown>);
  return effective(file, fold(file));
}

const line = (text: string) =>
  /^hostnameOverride: (.*)$/m.exec(writeConfig(configOf({ hostnameOverride: text })))![1];

describe("the written file", () => {
  it("holds the defaults as kube-proxy v1.37 writes them", async () => {
    await expect(written({})).toMatchFileSnapshot("../../../test/golden/config/defaults.golden");
  });

  it("holds nftables mode with everything that can differ", async () => {
    const text = written({
      "proxy-mode": "nftables",
      "feature-gates": { LoggingAlphaOptions: true, KubeProxyIPVS: true },
      "cluster-cidr": "10.0.0.0/8,fd00::/64",
      "bind-address": "fd00::1",
      "healthz-bind-address": "[::]:1234",
      "masquerade-all": true,
      "kube-api-qps": Math.fround(0.1),
      vmodule: [{ filePattern: "a*", verbosity: 3 }],
      "log-text-split-stream": true,
      "log-text-info-buffer-size": "64Ki",
      "ipvs-exclude-cidrs": [],
      "hostname-override": "Node-1",
    });
    await expect(text).toMatchFileSnapshot("../../../test/golden/config/nftables.golden");
  });

  it.each([
    ["node-1", "node-1"],
    ["", '""'],
    ["yes", '"yes"'],
    ["~", '"~"'],
    ["1.5", '"1.5"'],
    ["0x1f", '"0x1f"'],
    ["1_000", '"1_000"'],
    ["_1", "_1"],
    ["1:30", '"1:30"'],
    ["2001-01-01", '"2001-01-01"'],
    ["2001-01-01x", "2001-01-01x"],
    ["a: b", "'a: b'"],
    ["a:b", "a:b"],
    ["::1", "::1"],
    ["::", "'::'"],
    ["[::]:1", "'[::]:1'"],
    ["'a", "'''a'"],
    ["a #b", "'a #b'"],
    ["- a", "'- a'"],
    ["-a", "-a"],
    [" a", "' a'"],
    ["a\tb", '"a\\tb"'],
    ["é", "é"],
    ["😀", '"\\U0001F600"'],
    ["a\u2028", '"a\\L"'],
    ["<<", "<<"],
  ])("quotes %j like Go's library", (text, shown) => {
    expect(line(text)).toBe(shown);
  });

  it("sorts gates as Go's library does", () => {
    const gates = { B10: true, B9: true, AB: true, A: true, aA: true };
    const text = writeConfig(configOf({ featureGates: gates }));
    expect([...text.matchAll(/^ {2}(\w+): true$/gm)].map((match) => match[1]).slice(0, 5)).toEqual([
      "A",
      "AB",
      "B9",
      "B10",
      "aA",
    ]);
  });

  it("loses portRange but in userspace mode, and keeps settings for Windows", () => {
    expect(writeConfig(configOf({ portRange: "1-2" }))).toContain('portRange: ""');
    expect(writeConfig(configOf({ portRange: "1-2", mode: "userspace" }))).toContain("portRange: 1-2");
    expect(writeConfig(configOf({ windowsRunAsService: true }))).toContain("windowsRunAsService: true");
  });

  it("is in the order of the API type as plain data, for /configz", () => {
    const keys = Object.keys(plainFile(unfold(configOf({}))));
    expect(keys.slice(0, 5)).toEqual([
      "kind",
      "apiVersion",
      "clientConnection",
      "logging",
      "hostnameOverride",
    ]);
  });
});

describe("properties", () => {
  const duration = fc.bigInt({ min: 1n, max: 2n ** 62n });
  const text = fc.oneof(fc.string(), fc.string({ unit: "binary" }));
  const config = fc
    .record({
      mode: fc.constantFrom("", "iptables", "ipvs", "nftables", "userspace"),
      hostnameOverride: text,
      clusterCIDR: text,
      "ipvs.scheduler": text,
      nodePortAddresses: fc.option(fc.array(text, { maxLength: 3 })),
      "logging.vmodule": fc.array(fc.record({ filePattern: text, verbosity: fc.nat() }), { maxLength: 2 }),
      featureGates: fc.dictionary(fc.stringMatching(/^[A-Z][A-Za-z]{0,8}[0-9]{0,2}$/), fc.boolean(), {
        maxKeys: 4,
      }),
      "nftables.syncPeriod": duration,
      "iptables.minSyncPeriod": duration,
      "conntrack.udpTimeout": duration,
      "clientConnection.qps": fc.float({ noNaN: true, noDefaultInfinity: true }).filter((qps) => qps !== 0),
      oomScoreAdj: fc.integer({ min: -1000, max: 1000 }),
    })
    .map((fields) => configOf(fields));

  it("what is written reads back as the same configuration", () => {
    fc.assert(
      fc.property(config, (before) => {
        const decoded = decodeConfig(writeConfig(before), "f");
        if (!decoded.ok) throw new Error(decoded.errors.join("\n"));
        expect(decoded.notices).toEqual([]);
        expect(writeConfig(effective(decoded.config, fold(decoded.config)))).toBe(writeConfig(before));
      }),
      { numRuns: 300 },
    );
  });

  it("a file is read or refused with its name, whatever it holds", () => {
    const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
    const words = fc.constantFrom(
      "iptables:",
      "  syncPeriod: ",
      "mode: ",
      "- ",
      "{",
      "}",
      "[",
      "*a",
      "&a ",
      "<<: *a",
      "'",
      '"',
      "\n",
      ": ",
      "10s",
      "~",
      "!!map ",
      "?",
      "|",
      "---\n",
      "\t",
      "logging: {vmodule: ",
      "featureGates: ",
      "__proto__: 1\n",
    );
    const file = fc.oneof(
      fc.string(),
      fc.array(fc.oneof(words, fc.string()), { maxLength: 12 }).map((parts) => header + parts.join("")),
    );
    fc.assert(
      fc.property(file, (text) => {
        const completed = completeConfig({}, { name: "some.yaml", text });
        const error = completed.ok ? "failed validate: nothing" : completed.error;
        expect(error).toMatch(/^(failed complete|failed validate|initialize logging): /);
      }),
      { numRuns: 1_000 },
    );
  });
});
