// The kernel settings of ipvs mode, written only where they differ.
import { describe, expect, it } from "vitest";
import { applySysctls } from "../../host/sysctl.ts";
import { ipvsSysctls } from "./sysctls.ts";

const net = "/proc/sys/net/ipv4";

describe("kernel settings of ipvs mode", () => {
  it("20/1 five of them, and those that are right are not written", () => {
    const files = new Map([
      [`${net}/vs/conntrack`, "0\n"],
      [`${net}/vs/expire_nodest_conn`, "1\n"],
      [`${net}/vs/expire_quiescent_template`, "0\n"],
      [`${net}/ip_forward`, "1\n"],
    ]);
    const written: string[] = [];
    applySysctls(ipvsSysctls(false, "6.1.0-18-amd64"), {
      read: (file) => files.get(file)!,
      write: (file, text) => written.push(`${file.slice(net.length + 1)}=${text}`),
    });
    expect(written).toEqual(["vs/conntrack=1", "vs/expire_quiescent_template=1"]);
    expect(
      ipvsSysctls(false, "5.4.0").map(({ file, value }) => `${file.slice(net.length + 1)}=${value}`),
    ).toEqual([
      "vs/conntrack=1",
      "vs/conn_reuse_mode=0",
      "vs/expire_nodest_conn=1",
      "vs/expire_quiescent_template=1",
      "ip_forward=1",
    ]);
  });

  it.each([
    ["4.0.9", false],
    ["4.1.0", true],
    ["4.19.0-6-amd64", true],
    ["5.8.18", true],
    ["5.9.0", false],
    ["6.1.0", false],
    ["10.2-rc1", false],
  ])("20/2 Linux %s: conn_reuse_mode is set: %s", (release, isSet) => {
    expect(ipvsSysctls(false, release).some(({ file }) => file.endsWith("conn_reuse_mode"))).toBe(isSet);
  });

  it("20/3 strictARP adds those of ARP, which are else left alone", () => {
    const arp = (strict: boolean) =>
      ipvsSysctls(strict, "6.1.0")
        .filter(({ file }) => file.includes("arp"))
        .map(({ file, value }) => `${file.slice(net.length + 1)}=${value}`);
    expect(arp(false)).toEqual([]);
    expect(arp(true)).toEqual(["conf/all/arp_ignore=1", "conf/all/arp_announce=2"]);
  });
});
