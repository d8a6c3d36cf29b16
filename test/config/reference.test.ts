// Configuration beside the real kube-proxy v1.37: same exit code, same file written, same fields blamed.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { completeConfig } from "../../src/config/complete.ts";
import { writeConfig } from "../../src/config/file/write.ts";
import { readFlags } from "../../src/config/flags/read.ts";
import { findAssets } from "../assets.ts";

const assets = findAssets("kube-proxy");
const reason = assets.found ? null : assets.reason;
const folder = mkdtempSync(join(tmpdir(), "turnout-config-reference-"));
afterAll(() => rmSync(folder, { recursive: true }));

type Result = { readonly ok: boolean; readonly written: string | null; readonly blamed: readonly string[] };

const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

/** Flags, one line each; a line that starts with `|` is a line of the configuration file. */
const cases = `
--proxy-mode=nftables
--proxy-mode=ipvs --ipvs-min-sync-period=5s --ipvs-exclude-cidrs=1.0.0.0/8 --ipvs-exclude-cidrs=::/0
--proxy-mode=ipvs --iptables-sync-period=5s
--iptables-sync-period=1s --iptables-min-sync-period=5s
--kube-api-qps=1234567.5
--kube-api-qps=1e-7 --kube-api-burst=-1
--feature-gates=AllAlpha=false,KubeProxyIPVS=true,NFTablesNetlink=false
--feature-gates=KubeProxyIPVS=false --proxy-mode=ipvs
--feature-gates=WinDSR=false
--feature-gates=Nope=true
--hostname-override=1.5 --cluster-cidr=10.0.0.0/8,fd00::/64 --bind-address=::
--hostname-override=0x1f --healthz-bind-address=[::]:1 --metrics-bind-address=[::1]:2
--cluster-cidr=
--cluster-cidr=fd00::/64,fd01::/64
--nodeport-addresses=localhost,localhost,Localhost
--nodeport-addresses=
-v7 --vmodule=a=1,b*=2
--vmodule=a=1 --logging-format=json
--logging-format=xml --log-flush-frequency=0
--log-json-info-buffer-size=1.5Ki --feature-gates=LoggingAlphaOptions=true --log-text-split-stream
--log-json-info-buffer-size=1.5Ki
--conntrack-min=0x10 --conntrack-max-per-core=010 --conntrack-udp-timeout=1h1ns
--conntrack-min=-5 --oom-score-adj=1001 --proxy-mode=IPTables --detect-local-mode=foo
--conntrack-udp-timeout=5
--detect-local-mode=BridgeInterface
--detect-local-mode=InterfaceNamePrefix --show-hidden-metrics-for-version=1.35
--healthz-port=0 --metrics-port=0
--masquerade_all=T --proxy_mode=nftables --iptables-masquerade-bit=31
--masquerade-all false
--nothing=1
| bindAddress: fd00::1
| bindAddress: ::
| bindAddress: 1.2.3.4|bindAddress: 5.6.7.8|unknown: {a: 1}
| healthzBindAddress: fd00::5|metricsBindAddress: 10.0.0.1
| healthzBindAddress: "[fd00::5]"|metricsBindAddress: 1.2.3.4:0
| mode: ipvs
| mode: nftables|nftables: {syncPeriod: 10s, masqueradeAll: true, masqueradeBit: 32}
| mode: nftables|iptables: {masqueradeBit: 32, syncPeriod: 5s}
| iptables: {syncPeriod: -5s, minSyncPeriod: 2s}
| iptables: {minSyncPeriod: 0s, masqueradeBit: 0, localhostNodePorts: false, masqueradeAll: true}
| configSyncPeriod: 15
| logging: {flushFrequency: 1000000000}
-v=7 --vmodule=goo=8 --log-flush-frequency=2s | logging: {verbosity: 10, flushFrequency: 1000000000, vmodule: [{filePattern: foo, verbosity: 6}]}
| conntrack: {tcpEstablishedTimeout: 0s, maxPerCore: 0, min: null}|oomScoreAdj: 0
| nodePortAddresses: [primary, 10.1.2.3/8, 10.1.2.3/8]|mode: nftables
| clusterCIDR: "10.0.0.0/8, fd00::/64"
| clusterCIDR: "10.0.0.0/8, fd00::/64"|detectLocalMode: NodeCIDR
| enableProfiling: yes|oomScoreAdj: 010|hostnameOverride: 2001-01-01
| iptables: &a {masqueradeBit: 3}|nftables: {<<: *a, masqueradeAll: true}
| showHiddenMetricsForVersion: 1.36
| mode: constructor
| hostnameOverride: "\u0007"
| clusterCIDR: 10.1.2.3/0000000008
| logging: {flushFrequency: 1e9}
| logging: {flushFrequency: 9223372036854775808}
| oomScoreAdj: -1001|iptables: {masqueradeBit: -1, minSyncPeriod: -1ns}
| conntrack: {tcpCloseWaitTimeout: -1ns, udpStreamTimeout: -1ns}|healthzBindAddress: 1.2.3.4:65536
| portRange: 1-2|windowsRunAsService: true|winkernel: {networkName: x, enableDSR: on}
--hostname-override=Bar --ipvs-scheduler=y --proxy-mode=nftables | hostnameOverride: foo|ipvs: {scheduler: x}
`
  .trim()
  .split("\n");

describe("configuration beside kube-proxy", () => {
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));

  it.each(cases)("%s", async (line) => {
    const [flags, ...body] = line.split("|").map((part) => part.trim());
    const file = body.length === 0 ? null : `${header}${body.join("\n")}\n`;
    const argv = flags === "" ? [] : flags!.split(" ");
    expect(ours(argv, file)).toEqual(await theirs(argv, file));
  });
});

function ours(argv: readonly string[], file: string | null): Result {
  const read = readFlags([...argv, "--write-config-to=x"]);
  if (!read.ok || read.value.positional.length > 0) return { ok: false, written: null, blamed: [] };
  const completed = completeConfig(read.value.given, file === null ? null : { name: "c.yaml", text: file });
  if (completed.ok) return { ok: true, written: writeConfig(completed.config), blamed: [] };
  return { ok: false, written: null, blamed: fieldsIn(completed.error) };
}

function theirs(argv: readonly string[], file: string | null): Promise<Result> {
  const [input, output] = [join(folder, "c.yaml"), join(folder, "written.yaml")];
  rmSync(output, { force: true });
  if (file !== null) writeFileSync(input, file);
  const all = [...argv, `--write-config-to=${output}`, ...(file === null ? [] : [`--config=${input}`])];
  return new Promise((done) => {
    execFile(assets.found ? assets.paths["kube-proxy"] : "", all, (error, _, stderr) => {
      const ok = error === null;
      done({ ok, written: ok ? readFileSync(output, "utf8") : null, blamed: fieldsIn(stderr) });
    });
  });
}

/** Paths and kinds of the errors: `KubeProxyConfiguration.SyncPeriod: Invalid value`. */
function fieldsIn(text: string): readonly string[] {
  const kinds = "Invalid value|Duplicate value|Unsupported value|Forbidden|Required value";
  return [
    ...text.matchAll(new RegExp(`(?:KubeProxyConfiguration|logging)[\\w.[\\]]*: (?:${kinds})`, "g")),
  ].map(String);
}
