// What a kube-proxy makes of one cluster state: starts it in a fresh namespace, waits for its sync, reads the rules.

import { createNamespace, type Namespace } from "./namespace.ts";
import type { KubeObject } from "./objects.ts";
import { node } from "./places.ts";
import { type Configuration, type Mode, startProxy } from "./proxy.ts";

/** Texts by the command that printed them. */
export type Rules = Readonly<Record<string, string>>;

const listings: Record<Mode, readonly string[]> = {
  nftables: ["nft list ruleset"],
  iptables: ["iptables-save", "ip6tables-save"],
};

export async function recordRules(
  program: string,
  configuration: Configuration,
  nodeName: string,
  objects: readonly KubeObject[],
): Promise<Rules> {
  const namespace = await createNamespace("reference");
  try {
    await addNodeAddresses(namespace);
    const proxy = await startProxy(namespace, program, configuration, nodeName, objects);
    await proxy.ready();
    const rules: Record<string, string> = {};
    for (const listing of listings[configuration.mode])
      rules[listing] = await namespace.run("sh", "-c", listing);
    await proxy.stop();
    return rules;
  } finally {
    await namespace.remove();
  }
}

async function addNodeAddresses(namespace: Namespace): Promise<void> {
  const commands = [
    "ip link set lo up",
    "ip link add eth0 type veth peer name uplink",
    `ip address add ${node.addresses.ipv4}/24 dev eth0`,
    `ip address add ${node.addresses.ipv6}/64 dev eth0 nodad`,
    "ip link set eth0 up",
    "ip link set uplink up",
    "ip route add default via 192.168.0.1",
  ];
  await namespace.run("sh", "-ec", commands.join("\n"));
}
