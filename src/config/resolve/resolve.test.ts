// Node addresses, NodePort networks and local detectors: from configuration and node to the settings of a family.
import { describe, expect, it } from "vitest";
import type { Address, Family } from "../../model/address.ts";
import { completeConfig } from "../complete.ts";
import type { ValidConfig } from "../config.ts";
import { readFlags } from "../flags/read.ts";
import { chooseNodeIPs, isNodeIPUnknown } from "./node-ips.ts";
import {
  expandNodePortAddresses,
  includesIPv4Loopback,
  namesLoopback,
  nodePortAddressesOf,
} from "./node-port-addresses.ts";
import { type NodeFacts, resolve } from "./resolve.ts";
import { familyWarnings, nodePortWarning } from "./warnings.ts";

const facts: NodeFacts = {
  nodeName: "node-1",
  nodeIPs: ["192.168.0.2", "fd00::2"],
  podCIDRs: ["10.0.1.0/24", "fd00:10::/64"],
  zone: "z1",
  localAddresses: { ipv4: ["192.168.0.2", "127.0.0.1"], ipv6: ["::1", "fd00::2"] },
  tcpBeLiberal: false,
};

function config(...argv: string[]): ValidConfig {
  const read = readFlags(argv);
  if (!read.ok) throw new Error(read.reason);
  const completed = completeConfig(read.value.given, null);
  if (!completed.ok) throw new Error(completed.error);
  return completed.config;
}

const settingsOf = (family: Family, ...argv: string[]) => resolve(config(...argv), facts).settings[family];

describe("node addresses", () => {
  const rows: [raw: Address[], bind: string, primary: Family, ipv4: Address, ipv6: Address][] = [
    [[], "0.0.0.0", "ipv4", "127.0.0.1", "::1"],
    [[], "::", "ipv4", "127.0.0.1", "::1"],
    [[], "", "ipv4", "127.0.0.1", "::1"],
    [[], "fd00:4321::2", "ipv6", "127.0.0.1", "fd00:4321::2"],
    [["fd00:1234::1"], "0.0.0.0", "ipv6", "127.0.0.1", "fd00:1234::1"],
    [["2001:db8::2", "90.90.90.90"], "0.0.0.0", "ipv6", "90.90.90.90", "2001:db8::2"],
    [["2001:db8::2", "90.90.90.90"], "80.80.80.80", "ipv4", "80.80.80.80", "2001:db8::2"],
    [["2001:db8::2", "90.90.90.90"], "127.0.0.1", "ipv4", "127.0.0.1", "2001:db8::2"],
  ];

  it.each(rows)("02/10 %j and bind address %j choose %s", (raw, bind, primary, ipv4, ipv6) => {
    expect(chooseNodeIPs(raw, bind)).toEqual({ primary, addresses: { ipv4, ipv6 } });
  });

  it("reports when the primary address is unknown", () => {
    expect(isNodeIPUnknown(chooseNodeIPs([], "0.0.0.0"))).toBe(true);
    expect(isNodeIPUnknown(chooseNodeIPs(["192.168.0.2"], "0.0.0.0"))).toBe(false);
  });
});

describe("NodePort addresses", () => {
  const nodeIPs = { ipv4: "192.168.0.2", ipv6: "fd00::2" };

  it("expands keywords in their place", () => {
    expect(expandNodePortAddresses(["10.1.2.3/8", "primary", "localhost", "all"], nodeIPs)).toEqual([
      "10.0.0.0/8",
      "192.168.0.2/32",
      "fd00::2/128",
      "127.0.0.0/8",
      "::1/128",
      "0.0.0.0/0",
      "::/0",
    ]);
  });

  it("01/19 primary with loopback node addresses expands to nothing, so both families accept all", () => {
    const cidrs = expandNodePortAddresses(["primary"], { ipv4: "127.0.0.1", ipv6: "::1" });
    expect(cidrs).toEqual([]);
    expect(nodePortAddressesOf(cidrs, "ipv4")).toEqual({ kind: "all" });
    expect(nodePortAddressesOf(cidrs, "ipv6")).toEqual({ kind: "all" });
  });

  it("01/20 11/32 a list of one family leaves the other one open", () => {
    const cidrs = expandNodePortAddresses(["192.168.0.0/24"], nodeIPs);
    expect(nodePortAddressesOf(cidrs, "ipv4")).toEqual({ kind: "some", cidrs: ["192.168.0.0/24"] });
    expect(nodePortAddressesOf(cidrs, "ipv6")).toEqual({ kind: "all" });
  });

  it("01/21 a zero network accepts all, contains loopback, and hides no explicit loopback", () => {
    const cidrs = expandNodePortAddresses(["0.0.0.0/0", "127.0.0.0/8"], nodeIPs);
    const addresses = nodePortAddressesOf(cidrs, "ipv4");
    expect(addresses).toEqual({ kind: "all" });
    expect(includesIPv4Loopback(addresses)).toBe(true);
    expect(namesLoopback(cidrs, "ipv4")).toBe(true);
    expect(namesLoopback(cidrs, "ipv6")).toBe(false);
    expect(namesLoopback(["0.0.0.0/0"], "ipv4")).toBe(false);
  });

  it("finds loopback inside and around", () => {
    const within = (...cidrs: string[]) => includesIPv4Loopback({ kind: "some", cidrs });
    expect(within("127.0.0.1/32")).toBe(true);
    expect(within("126.0.0.0/7")).toBe(true);
    expect(within("10.0.0.0/8", "192.168.0.0/24")).toBe(false);
  });
});

describe("settings of a family", () => {
  it("carries the node and the mark", () => {
    expect(settingsOf("ipv4", "--iptables-masquerade-bit=31")).toMatchObject({
      family: "ipv4",
      nodeName: "node-1",
      zone: "z1",
      nodeIP: "192.168.0.2",
      localAddresses: ["127.0.0.1", "192.168.0.2"],
      masqueradeMark: 0x80000000,
      externalIPsAllowed: true,
    });
    expect(settingsOf("ipv4", "--proxy-mode=nftables", "--iptables-masquerade-bit=3").masqueradeMark).toBe(
      0x4000,
    );
    expect(settingsOf("ipv6", "--feature-gates=AllowServiceExternalIPs=false").externalIPsAllowed).toBe(
      false,
    );
  });

  it.each([
    [["--cluster-cidr=10.1.2.3/8"], { kind: "cidr", cidr: "10.0.0.0/8" }, { kind: "none" }],
    [
      ["--detect-local-mode=NodeCIDR"],
      { kind: "cidr", cidr: "10.0.1.0/24" },
      { kind: "cidr", cidr: "fd00:10::/64" },
    ],
    [
      ["--detect-local-mode=BridgeInterface", "--pod-bridge-interface=br0"],
      { kind: "interface", name: "br0" },
      { kind: "interface", name: "br0" },
    ],
    [
      ["--detect-local-mode=InterfaceNamePrefix", "--pod-interface-name-prefix=veth"],
      { kind: "interfacePrefix", prefix: "veth" },
      { kind: "interfacePrefix", prefix: "veth" },
    ],
  ])("detects local traffic with %j", (argv, ipv4, ipv6) => {
    expect(settingsOf("ipv4", ...argv).detector).toEqual(ipv4);
    expect(settingsOf("ipv6", ...argv).detector).toEqual(ipv6);
  });

  it("serves localhost NodePorts in iptables mode for IPv4 where the list contains loopback", () => {
    expect(settingsOf("ipv4").localhostNodePorts).toBe(true);
    expect(settingsOf("ipv6").localhostNodePorts).toBe(false);
    expect(settingsOf("ipv4", "--nodeport-addresses=primary").localhostNodePorts).toBe(false);
    expect(settingsOf("ipv4", "--nodeport-addresses=primary,localhost").localhostNodePorts).toBe(true);
    expect(settingsOf("ipv4", "--iptables-localhost-nodeports=false").localhostNodePorts).toBe(false);
  });

  it("treats loopback in nftables mode by the gate and the list", () => {
    const gate = "--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true";
    expect(settingsOf("ipv4", "--nodeport-addresses=localhost").nftLocalhost).toBe("pass");
    expect(settingsOf("ipv4", gate, "--nodeport-addresses=all").nftLocalhost).toBe("reject");
    expect(settingsOf("ipv4", gate, "--nodeport-addresses=all,localhost").nftLocalhost).toBe("serve");
    expect(settingsOf("ipv6", gate, "--nodeport-addresses=127.0.0.0/8").nftLocalhost).toBe("reject");
  });

  it("is liberal when the configuration or the kernel is", () => {
    expect(settingsOf("ipv4").tcpBeLiberal).toBe(false);
    expect(settingsOf("ipv4", "--conntrack-tcp-be-liberal").tcpBeLiberal).toBe(true);
    expect(resolve(config(), { ...facts, tcpBeLiberal: true }).settings.ipv4.tcpBeLiberal).toBe(true);
  });
});

describe("warnings", () => {
  const nodePorts = (...argv: string[]) =>
    nodePortWarning(config(...argv), [], resolve(config(...argv), facts));
  const families = (dualStack: boolean, podCIDRs: string[], ...argv: string[]) =>
    familyWarnings(config(...argv), podCIDRs, "ipv4", dualStack);

  it("concern NodePorts that are open by accident", () => {
    expect(nodePorts()).toContain("nodePortAddresses is unset");
    expect(nodePorts("--nodeport-addresses=192.168.0.0/24")).toBeNull();
    expect(nodePorts("--nodeport-addresses=192.168.0.0/24", "--cluster-cidr=10.0.0.0/8,fd00::/64")).toContain(
      "all local IPv6 addresses",
    );
    expect(nodePorts("--nodeport-addresses=fd00::/64")).toContain("all local IPv4 addresses");
    expect(nodePorts("--nodeport-addresses=primary")).toBeNull();
  });

  it("02/13 a cluster CIDR of the wrong family is fatal only where nothing else would work", () => {
    const argv = ["--cluster-cidr=fd00::/64"];
    expect(families(false, [], ...argv)).toMatchObject([{ fatal: true }]);
    expect(families(true, [], ...argv)).toMatchObject([{ fatal: false }]);
    expect(families(false, [], ...argv, "--detect-local-mode=NodeCIDR")).toMatchObject([{ fatal: false }]);
  });

  it("02/14 podCIDRs of the wrong family are fatal in NodeCIDR mode, also dual-stack", () => {
    expect(families(true, ["fd00::/64"], "--detect-local-mode=NodeCIDR")).toMatchObject([{ fatal: true }]);
    expect(families(true, ["fd00::/64"])).toMatchObject([{ fatal: false }]);
    expect(families(true, ["10.0.0.0/24", "fd00::/64"], "--detect-local-mode=NodeCIDR")).toEqual([]);
  });

  it("concern server addresses and excluded networks when single-stack", () => {
    const argv = [
      "--healthz-bind-address=[fd00::1]:1",
      "--metrics-bind-address=[::]:2",
      "--ipvs-exclude-cidrs=fd00::/64",
    ];
    expect(families(false, [], ...argv).map(({ message }) => message.split(" ")[0])).toEqual([
      "ipvs.excludeCIDRs",
      "healthzBindAddress",
    ]);
    expect(families(true, [], ...argv)).toEqual([]);
  });
});
