// What the text of a configuration file means, and which text means nothing.
import { describe, expect, it } from "vitest";
import { complete, configOf, fileError, fromFile, header } from "../../../test/support/completed.ts";
import { completeConfig } from "../complete.ts";
import { seconds } from "../units/duration.ts";

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
    expect(fromFile("logging: {flushFrequency: 1e9}").logging.flushFrequency.duration).toBe(seconds(1));
    expect(fileError("logging: {flushFrequency: 9223372036854775808}")).toContain("must fit 64 bits");
    expect(fileError("configSyncPeriod: 15")).toContain(
      "configSyncPeriod: must be a duration with a unit, not 15: add a unit, like 15s",
    );
  });

  it("reads JSON, aliases, merges and YAML 1.1 scalars, and only the first document", () => {
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

  it("01/3 what is neither UTF-8 nor text is refused with its place", () => {
    const error = (bytes: Buffer) => {
      const completed = completeConfig({}, { name: "f", text: bytes.toString() });
      return completed.ok ? "no error" : completed.error;
    };
    const ending = (...bytes: number[]) =>
      error(Buffer.concat([Buffer.from(`${header}mode: `), Buffer.from(bytes)]));
    expect(ending(0xe9)).toBe("failed complete: failed to decode: f:3:7: is not text in UTF-8");
    expect(ending(0x69, 0x00, 0x70)).toBe(
      "failed complete: failed to decode: f:3:8: control characters are not allowed",
    );
    expect(ending(0x22, 0x1b, 0x22)).toContain("f:3:8: control characters are not allowed");
    expect(error(Buffer.from(`\ufeff${header}`, "utf16le"))).toContain("f:1:1: is not text in UTF-8");
    expect(error(Buffer.from(`\ufeff${header}`.replaceAll("\n", "\r\n")))).toBe("no error");
  });

  it("01/3 what begins like JSON must be JSON", () => {
    const json = JSON.stringify({
      apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
      kind: "KubeProxyConfiguration",
    });
    const error = (text: string) => {
      const completed = completeConfig({}, { name: "f", text });
      return completed.ok ? "no error" : completed.error;
    };
    expect(error(`\n ${json}\n`)).toBe("no error");
    expect(error(`---\n${json} # as YAML`)).toBe("no error");
    for (const other of [
      json.replace("{", "{ /* a */ "),
      json.replace("}", ",}"),
      json.replaceAll('"', ""),
      `${json}\n---\n`,
    ])
      expect(error(other)).toContain("failed to decode: f: begins like JSON, but is none: ");
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
