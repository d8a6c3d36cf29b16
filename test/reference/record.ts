// What a kube-proxy makes of one cluster state: starts it in a fresh namespace, waits for its sync, reads the rules.
import { hostCidr } from "../../src/model/address.ts";
import { createNamespace, type Namespace } from "../kernel/netns.ts";
import { enter } from "./foothold.ts";
import { foreignServers, furtherNodeAddresses } from "./ipvs-cases.ts";
import type { KubeObject } from "./objects.ts";
import { addressOf } from "./places.ts";
import { type Configuration, type Mode, startProxy } from "./proxy.ts";

/** Texts by the command that printed them. */
export type Rules = Readonly<Record<string, string>>;

const listings: Record<Mode | "ipvs", readonly string[]> = {
  nftables: ["nft list ruleset"],
  iptables: ["iptables-save", "ip6tables-save"],
  userspace: ["iptables-save", "ip6tables-save"],
  ipvs: [
    "ipvsadm -Sn",
    "ipset save",
    "iptables-save",
    "ip6tables-save",
    "ip -o address show dev kube-ipvs0 scope global",
    "ipvsadm -L --timeout",
    "sysctl net.ipv4.vs.conntrack net.ipv4.vs.expire_nodest_conn net.ipv4.vs.expire_quiescent_template",
    "sysctl net.ipv4.ip_forward net.ipv4.conf.all.arp_ignore net.ipv4.conf.all.arp_announce",
  ],
};

/** How long and how often to check for the first sync. */
type Pace = { readonly timeoutMs: number; readonly everyMs: number };

export async function recordRules(
  program: string,
  configuration: Configuration<Mode | "ipvs">,
  nodeName: string,
  objects: readonly KubeObject[],
  pace?: Pace,
): Promise<Rules> {
  const namespace = createNamespace("reference");
  const foothold = enter(namespace);
  try {
    addNodeAddresses(namespace);
    if (configuration.mode === "ipvs") addForIpvs(namespace);
    const proxy = await startProxy(foothold, program, configuration, nodeName, objects);
    await proxy.ready(pace);
    const rules: Record<string, string> = {};
    for (const listing of listings[configuration.mode]) rules[listing] = namespace.run("sh", "-c", listing);
    await proxy.stop();
    return rules;
  } finally {
    await foothold.leave();
    namespace.remove();
  }
}

function addNodeAddresses(namespace: Namespace): void {
  const commands = [
    "ip link set lo up",
    "ip link add eth0 type veth peer name uplink",
    `ip address add ${addressOf("host", "ipv4")}/24 dev eth0`,
    `ip address add ${addressOf("host", "ipv6")}/64 dev eth0 nodad`,
    "ip link set eth0 up",
    "ip link set uplink up",
    "ip route add default via 192.168.0.1",
  ];
  namespace.run("sh", "-ec", commands.join("\n"));
}

function addForIpvs(namespace: Namespace): void {
  const addresses = furtherNodeAddresses.map((address) => `ip address add ${hostCidr(address)} dev lo`);
  const servers = foreignServers.map((server) => `ipvsadm ${server}`);
  namespace.run("sh", "-ec", [...addresses, ...servers].join("\n"));
}
