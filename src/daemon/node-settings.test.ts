// Which changes of a node's addresses are changes of its settings: each of those routes every Service again.
import { expect, it } from "vitest";
import type { ValidConfig } from "../config/config.ts";
import { defaultConfig } from "../explain/node-routes.ts";
import { NodeSettings } from "./node-settings.ts";

const addresses = { ipv4: ["127.0.0.1", "192.168.0.2"], ipv6: ["2001:db8::2", "::1"] };

function settingsOf(nodePortAddresses: readonly string[]) {
  const config: ValidConfig = { ...defaultConfig("nftables"), nodePortAddresses: [...nodePortAddresses] };
  const settings = new NodeSettings(config, {
    nodeName: "node-a",
    nodeIPs: ["192.168.0.2", "2001:db8::2"],
    podCIDRs: [],
    zone: "",
    localAddresses: addresses,
    tcpBeLiberal: false,
  });
  const ipv6 = settings.resolved.settings.ipv6;
  const add = (...more: string[]) => {
    settings.setLocalAddresses({ ...addresses, ipv6: [...addresses.ipv6, ...more] });
    return settings.resolved.settings.ipv6;
  };
  return { ipv6, add };
}

it("the link-local address of a pod's interface changes nothing", () => {
  const { ipv6, add } = settingsOf([]);
  expect(add("fe80::1")).toBe(ipv6);
  expect(add()).toBe(ipv6);
});

it("any other address does, and a link-local one that nodePortAddresses lists", () => {
  const { ipv6, add } = settingsOf([]);
  expect(add("2001:db8::3")).not.toBe(ipv6);
  const listed = settingsOf(["fe80::/64"]);
  expect(listed.add("fe80::1").localAddresses).toContain("fe80::1");
  expect(listed.add("fe80::1", "fe80:0:0:1::1")).toBe(listed.add("fe80::1"));
});
